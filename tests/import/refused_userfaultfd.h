/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_IMPORT_REFUSED_USERFAULTFD_H
#define TESTS_IMPORT_REFUSED_USERFAULTFD_H

#include <stdatomic.h>
#include <stdint.h>

/* The system call fails with @error; 0: all calls work. */
struct refused_call {
	long number;
	int error;
	int count;
};

extern struct refused_call refused_call;

/* The system call with this number waits until the test sets another number. */
extern atomic_long refused_held;
extern atomic_bool refused_is_waiting; /* such a call has begun */

/* The thread that is created as the @refused_thread'th, from now on, is not; 0: all are. */
extern int refused_thread;

/* Features that the kernel's userfaultfd(2) does not have. */
extern uint64_t refused_features;

#endif
