/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of memory of all kinds, on drivers that copy some of it. */
#ifndef TESTS_ICD_ZERO_COPY_H
#define TESTS_ICD_ZERO_COPY_H

#include "fixture.h"

/* For TEST_EACH(): whether the driver copies the memory under test. */
static const struct habit {
	const char *name;
	bool copies;
} habits[] = { { "shares", false }, { "copies", true } };

/* Resets and opens the fixture on a driver with @option; STUB_NUM_OPTIONS sets no option. */
void zero_copy_open(enum stub_option option, long value);

/* Resets and opens the fixture on a device that is no CPU. */
void zero_copy_open_gpu(void);

/* Either the import is refused, or a kernel works on the memory itself; true for the latter. */
bool zero_copy_takes_import(cl_mem_flags flags, const cl_import_properties_arm *properties,
			    void *memory, size_t size, unsigned char *bytes);
bool zero_copy_takes(cl_mem_flags flags, unsigned char *memory, size_t size);

/* A nameless file on disk. */
int zero_copy_create_file(void);

/* Maps the file @fd with @size bytes, and closes @fd.  Unmap before the next call. */
unsigned char *zero_copy_map_file(int fd, size_t size, int flags);
void zero_copy_unmap(void);

#endif
