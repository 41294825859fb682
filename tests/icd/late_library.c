/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose destructor function makes calls of a program's. */
#include <stddef.h>

extern __attribute__((visibility("default"))) void (*late_library_end)(void);
void (*late_library_end)(void);

static void __attribute__((destructor)) late_library_destroy(void)
{
	if (late_library_end)
		late_library_end();
}
