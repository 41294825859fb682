/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of a self-test: a kernel and the host work with two buffers over shared memory. */
#ifndef ICD_SELFTEST_ROUNDS_H
#define ICD_SELFTEST_ROUNDS_H

#include "icd/selftest/session.h"

#define ROUNDS_DEFAULT 3 /* the first use is special in drivers with lazy copies */

/* A part of a region, and the buffers over the part. */
struct rounds_part {
	struct import_region *region;
	size_t offset, size;
	cl_mem_flags flags; /* of the application's buffer */
};

/* A buffer over the part; with the part's flags for a @reader.  @arg: struct rounds_part. */
cl_mem rounds_part_create(cl_context context, bool reader, void *arg, cl_int *err);

/* All return 1: zero copy, 0: copied, or an error of OpenCL. */
/* On each device.  The queue is of the first device. */
cl_int rounds_run_on_all(struct session *s, const struct selftest_memory *memory);
cl_int rounds_run_part(struct session *s, struct rounds_part *part);

/* The rounds touch four bytes at each of the places, in memory of @size bytes. */
void rounds_places(size_t size, size_t at[SELFTEST_PLACES]);

#endif /* ICD_SELFTEST_ROUNDS_H */
