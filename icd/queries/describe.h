/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's interface for the programs of tools/.  Not an OpenCL interface. */
#ifndef ICD_QUERIES_DESCRIBE_H
#define ICD_QUERIES_DESCRIBE_H

#include <stddef.h>

#include <CL/cl.h>

#define DESCRIBE_FUNCTION "climportDescribeDevice"

/**
 * describe_device - how a device takes a type of memory
 * @import_type: CL_IMPORT_TYPE_HOST_ARM or CL_IMPORT_TYPE_DMA_BUF_ARM
 * @method: set to the name of the method, or "refused"; static
 * @why: set to a sentence
 * @kept: set to how the memory stays registered between imports, a clause; NULL: never
 *
 * Returns CL_SUCCESS, CL_INVALID_DEVICE or CL_INVALID_VALUE.
 */
cl_int CL_API_CALL describe_device(cl_device_id device, cl_uint import_type, const char **method,
				   const char **why, const char **kept);

typedef __typeof__(&describe_device) describe_device_fn;

/* support_probe() in support.h, and the descriptor for the answer in a probe process. */
#define PROBE_FUNCTION "climportProbePlatform"
#define PROBE_FD 3

typedef cl_int(CL_API_CALL *probe_platform_fn)(cl_platform_id platform, const char *key,
					       char *answer, size_t size);

#endif /* ICD_QUERIES_DESCRIBE_H */
