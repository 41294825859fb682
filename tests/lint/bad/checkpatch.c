// SPDX-License-Identifier: GPL-2.0
int parentheses_around(int value)
{
	return (value);
}
