/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large allocations of a device's own memory: some drivers die of their import.
 *
 * Measured with NVIDIA's driver 580.159.04, OpenCL 3.0 CUDA 13.0.98, by a program without this layer: on a
 * machine with two H200 and NVLink, clCreateBufferWithProperties() ends the process by SIGSEGV for
 * memory of cuMemCreate() on the device of 512, 514, 768, 1024 MiB and more, and takes 2, 64, 256 and 510
 * MiB, and any number of these; memory of the host is taken in any size.  On a machine with a single
 * H200 the same driver takes 1 GiB of the device's memory.  512 MiB is the largest page of such a GPU.
 *
 * No query tells the two machines apart.  So climport-probe imports such memory when the rest of the record is written.
 */
#ifndef ICD_METHODS_OPAQUE_FD_LARGE_H
#define ICD_METHODS_OPAQUE_FD_LARGE_H

#include "icd/objects/method.h"

/* Bytes of the least allocation of which a driver is known to die. */
#define LARGE_MIB 512u
#define LARGE_LEAST ((size_t)LARGE_MIB << 20)

/* Writes to large memory and reads it through a second buffer. */
void large_test(struct device *device);
void large_expect_death(struct facts *facts);

/* large_check() of large memory. */
cl_int large_check_record(const struct device *device);

/**
 * large_check - whether the driver survives the import of a descriptor
 * @opaque: the size is of the whole descriptor, of which the driver maps what it likes, whatever part
 *	    is imported
 *
 * Returns CL_SUCCESS, or CL_INVALID_OPERATION, logged.
 */
static inline cl_int large_check(const struct device *device, const struct import_opaque *opaque)
{
	return opaque->is_on_device && opaque->size >= LARGE_LEAST ? large_check_record(device)
								   : CL_SUCCESS;
}

#endif /* ICD_METHODS_OPAQUE_FD_LARGE_H */
