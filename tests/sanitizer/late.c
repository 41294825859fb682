/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded late: a thread gets the thread-local memory when the thread asks. */
long *late_memory(void);

static _Thread_local long memory;

long *late_memory(void)
{
	return &memory;
}
