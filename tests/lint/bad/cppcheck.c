/* SPDX-License-Identifier: Apache-2.0 */
int beyond_the_end(void)
{
	int a[2] = { 0, 0 };

	return a[2];
}
