/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a run, for the runner and for the processes of the tests. */
#ifndef TESTS_SPEC_RUN_H
#define TESTS_SPEC_RUN_H

#include <stdbool.h>

struct run {
	const char *library;	       /* of OpenCL; NULL: the system's */
	const char *platform, *device; /* a number, or a part of the name; NULL: the first */
	const char *protected_heap;    /* the file of a dma-buf heap; NULL: no heap */
	bool plain;		       /* clCreateBuffer() stands in for clImportMemoryARM() */
	bool together;		       /* one process for all tests, until a test dies */
	bool afresh; /* with together: a test that fails behind others runs again */
	unsigned int seconds, total_seconds;
};

#endif /* TESTS_SPEC_RUN_H */
