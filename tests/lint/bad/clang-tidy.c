/* SPDX-License-Identifier: Apache-2.0 */
int sign_of_number(int a)
{
	if (a > 0)
		return 1;
	else if (a < 0)
		return 2;
	else if (a > 0)
		return 3;
	return 0;
}
