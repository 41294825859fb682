/* SPDX-License-Identifier: Apache-2.0 */
/* The test of large.h, in a probe process: the driver may end the process. */
#ifndef ICD_METHODS_OPAQUE_FD_LARGE_TEST_H
#define ICD_METHODS_OPAQUE_FD_LARGE_TEST_H

#include "icd/probe/verdict.h"
#include "import/import.h"

/*
 * Allocates @size bytes of the device's memory, imports the memory twice, and copies to and from its
 * ends.  @why: as verdict_get() has it.  What CUDA or OpenCL refuses is VERDICT_UNKNOWN: the driver has
 * survived, and may accept when there is more memory.
 */
enum verdict large_test(cl_device_id device, const unsigned char uuid[IMPORT_UUID_SIZE],
			size_t size, char why[VERDICT_WHY_SIZE]);

#endif
