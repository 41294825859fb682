/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrong arguments of clImportMemoryARM, for every method: each has one error, whatever the method,
 * and leaves nothing.
 */
#ifndef TESTS_ICD_BAD_INPUT_H
#define TESTS_ICD_BAD_INPUT_H

#include "fixture.h"

/* The arguments of a call, of which the right ones are an import of three pages. */
struct bad_call {
	cl_context context;
	cl_mem_flags flags;
	cl_import_properties_arm properties[9];
	void *memory;
	size_t size;
	int fd, other_fd; /* of the memory; another descriptor, or -1 */
	unsigned char *bytes;
};

enum bad_memory { BAD_HOST = 1, BAD_DMA_BUF = 2, BAD_BOTH = 3 };

/* @spoil makes one argument wrong. */
struct bad_input {
	const char *name;
	enum bad_memory of;
	void (*spoil)(struct bad_call *call);
	cl_int wanted;
};

extern const struct bad_input bad_inputs[];
extern const size_t bad_input_count;

/*
 * Expects the error of a wrong call, at the first import of the process and behind a right import, and
 * that the right call works then.  The fixture is open, with the driver of a method.
 */
void bad_input_expect(const struct bad_input *bad, enum bad_memory memory);

#endif
