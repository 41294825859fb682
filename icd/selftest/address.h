/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of a buffer in a kernel.  On a CPU, the host's own address means zero copy.  The memory is not
 * touched.
 */
#ifndef ICD_SELFTEST_ADDRESS_H
#define ICD_SELFTEST_ADDRESS_H

#include <stdint.h>

#include "icd/selftest/session.h"

/**
 * address_find - run a kernel that tells where it sees a buffer
 * @s: with native kernels, or with the compiled program
 *
 * Returns CL_SUCCESS or the driver's error.
 */
cl_int address_find(struct session *s, cl_mem buffer, uintptr_t *seen);

#endif /* ICD_SELFTEST_ADDRESS_H */
