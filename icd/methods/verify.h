/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLIMPORT_VERIFY=1: an import proves itself with data before the program has it.  For bug reports, and for drivers
 * whose habits no self-test has met: the rules that imports rely on are made of what a self-test has tried.
 */
#ifndef ICD_METHODS_VERIFY_H
#define ICD_METHODS_VERIFY_H

#include "icd/objects/method.h"

/**
 * verify_import - do kernels work on the memory of an import?
 * @flags: of the import
 *
 * Kernels write through buffers of the method, in a context of their own, to four bytes at the beginning, the middle
 * and the end, which get their old values back: no other thread and no device may use the memory meanwhile.  Memory
 * that the CPU or the import may not write, or of fewer bytes, is not verified, and a message says so.
 *
 * Returns CL_SUCCESS, or an error, logged: CL_INVALID_OPERATION, the driver copies; or what the driver returned.
 */
cl_int verify_import(const struct context_import *how, cl_mem_flags flags,
		     struct import_region *region);

#endif /* ICD_METHODS_VERIFY_H */
