/* SPDX-License-Identifier: Apache-2.0 */
/* The method opaque_fd on fakes of CUDA and of NVIDIA's resource manager (RM). */
#ifndef TESTS_ICD_OPAQUE_FIXTURE_H
#define TESTS_ICD_OPAQUE_FIXTURE_H

#include "fixture.h"
#include "icd/probe/interface.h"
#include "fake_cuda.h"
#include "fake_rm.h"

#define ALIGN 128 /* CL_DEVICE_MEM_BASE_ADDR_ALIGN of the stub, in bytes */

extern unsigned char uuid[16];

/* The controls are at their defaults, and no layer is loaded. */
void opaque_reset(void);

typedef describe_device_fn describe_fn;

/* The name of the method by which the layer imports memory of @type. */
const char *opaque_read_method(cl_uint type);

/* Loads the layer, whose method for host memory has to be opaque_fd. */
void opaque_begin(void);

size_t opaque_query_size(cl_mem mem, cl_mem_info name);

#endif
