/* SPDX-License-Identifier: Apache-2.0 */
/* It does what it does to those that have it. */
int release(void)
{
	return 0;
}
