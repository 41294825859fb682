/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport 0.1.0, for old_program.c: its functions had other arguments. */
__attribute__((visibility("default"))) int old_library_register(void) __asm__("climport_register");

int old_library_register(void)
{
	return 0;
}
