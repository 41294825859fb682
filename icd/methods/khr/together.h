/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of several root devices.  A driver may keep a copy of each buffer for each device of a
 * context, and work on a dma-buf itself in contexts of one device.  So such contexts have a self-test
 * of their own, in a context of the same root devices.
 */
#ifndef ICD_METHODS_KHR_TOGETHER_H
#define ICD_METHODS_KHR_TOGETHER_H

#include "icd/methods/khr/proof.h"
#include "icd/methods/method.h"

/**
 * khr_prove_together - whether the devices of a context work on a dma-buf itself, together
 *
 * Each device is proved alone.  A context with one root device needs no further test.
 * Returns CL_INVALID_OPERATION, logged, if the devices do not; CL_OUT_OF_RESOURCES or
 * CL_OUT_OF_HOST_MEMORY, logged, if the test could not run, and the next import tests again.
 */
cl_int khr_prove_together(struct context *context, enum khr_memory memory);

extern const struct proof khr_together_proof;

#endif /* ICD_METHODS_KHR_TOGETHER_H */
