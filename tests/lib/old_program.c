/* SPDX-License-Identifier: Apache-2.0 */
/* A program that was linked to 0.1.0. */
int climport_register(void);

int main(void)
{
	return climport_register();
}
