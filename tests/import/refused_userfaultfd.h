/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_IMPORT_REFUSED_USERFAULTFD_H
#define TESTS_IMPORT_REFUSED_USERFAULTFD_H

/* The system call fails with @error; 0: all calls work. */
struct refused_call {
	long number;
	int error;
	int count;
};

extern struct refused_call refused_call;

#endif
