/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ICD_CALLS_KERNEL_H
#define ICD_CALLS_KERNEL_H

#include "icd/access/access.h"

/* access_none(), and access_begin() for the arguments of a kernel that is to be enqueued. */
cl_int kernel_begin(struct access *a, cl_command_queue queue, cl_kernel kernel, cl_uint num_wait,
		    const cl_event *wait, cl_event *event);

#endif /* ICD_CALLS_KERNEL_H */
