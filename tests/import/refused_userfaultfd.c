/* SPDX-License-Identifier: Apache-2.0 */
/* A system that refuses system calls of the monitor: linked with --wrap=syscall. */
#include "refused_userfaultfd.h"

#include <errno.h>
#include <stdarg.h>

struct refused_call refused_call;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (refused_call.error && number == refused_call.number) {
		refused_call.count++;
		errno = refused_call.error;
		return -1;
	}
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
