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
 * No query tells the two machines apart.  So a proof (probe/proof.h) imports such memory in a probe
 * process, before the first import of the program's.
 */
#ifndef ICD_METHODS_OPAQUE_FD_LARGE_H
#define ICD_METHODS_OPAQUE_FD_LARGE_H

#include "icd/methods/opaque_fd/coherency.h"
#include "icd/probe/verdict.h"

/* Bytes of the least allocation of which a driver is known to die: see above. */
#define LARGE_MIB 512u
#define LARGE_LEAST ((size_t)LARGE_MIB << 20)

/* The largest allocation below: CUDA allocates multiples of 2 MiB, and makes 512 MiB of 511. */
#define LARGE_PART_MIB (LARGE_MIB - 2)

/**
 * large_check - whether the driver survives the import of a descriptor
 * @opaque: the size is of the whole descriptor, of which the driver maps what it likes, whatever part
 *	    is imported
 *
 * The first such import of a device asks for the proof.  Other threads wait meanwhile.  Returns CL_SUCCESS;
 * CL_INVALID_OPERATION: the driver does not survive; CL_OUT_OF_RESOURCES: nothing is proved, and the next
 * import tries again: at once if the driver has survived, ten minutes later if a probe process was started
 * and has given no answer.  Errors are logged.
 */
cl_int large_check(const struct opaque_device *device, const struct import_opaque *opaque);

/* Of a device, whose UUID in hexadecimal digits is the words. */
extern const struct proof large_proof;

#endif /* ICD_METHODS_OPAQUE_FD_LARGE_H */
