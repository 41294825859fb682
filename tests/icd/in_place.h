/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers with CL_MEM_USE_HOST_PTR on a driver like NVIDIA's, with CLIMPORT_HOST_PTR=1.  The driver's
 * own buffers with a host pointer show the host what kernels write at a map only.
 */
#ifndef TESTS_ICD_IN_PLACE_H
#define TESTS_ICD_IN_PLACE_H

#include "opaque_fixture.h"

/* in_place_reset() alone: options may follow, then fixture_open(). */
struct fake_vulkan *in_place_reset(void);
void in_place_open(void);
void in_place_close(void);

/*
 * clCreateBuffer with CL_MEM_USE_HOST_PTR.  The test fails if the driver is asked for a buffer on the
 * memory, or, for the second function, if the driver is not asked.
 */
cl_mem test_in_place_create(cl_mem_flags flags, void *memory, size_t size);
cl_mem test_in_place_create_own(cl_mem_flags flags, void *memory, size_t size);

/* Whether the host sees what a kernel writes, without a map. */
bool test_in_place_is(cl_mem mem, unsigned char *memory);

#endif
