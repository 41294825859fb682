/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do kernels work on memory, by buffers of a method?  For the self-tests of methods, and for CLIMPORT_VERIFY=1, with
 * which an import proves itself with data before the program has it.  That is for bug reports, and for drivers whose
 * habits no self-test has met: the rules that imports rely on are made of what a self-test has tried.
 */
#ifndef ICD_METHODS_VERIFY_H
#define ICD_METHODS_VERIFY_H

#include "icd/objects/method.h"

/**
 * verify_memory - run rounds (selftest/rounds.h) on each device, in a context of their own
 * @region: memory that the CPU reads and writes.  The first, the middle and the last byte get their old values back
 *
 * Returns 1: zero copy, 0: not, or an error of OpenCL.
 */
cl_int verify_memory(const struct context_import *how, const cl_device_id *devices, cl_uint count,
		     struct import_region *region, unsigned int rounds);

/**
 * verify_import - verify_memory() for an import
 * @flags: of the import
 *
 * No other thread and no device may use the memory meanwhile.  Memory that the CPU or the import may not write, or of
 * less than three bytes, is not verified, and a message says so.
 *
 * Returns CL_SUCCESS, or an error, logged: CL_INVALID_OPERATION, the driver copies; or what the driver returned.
 */
cl_int verify_import(const struct context_import *how, cl_mem_flags flags,
		     struct import_region *region);

#endif /* ICD_METHODS_VERIFY_H */
