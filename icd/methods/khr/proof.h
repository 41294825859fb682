/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test of dma-bufs: kernels work on a dma-buf of climport's own, through two buffers.
 *
 * A driver's word is no proof: a driver may take a descriptor and give a buffer of other memory,
 * without an error.
 */
#ifndef ICD_METHODS_KHR_PROOF_H
#define ICD_METHODS_KHR_PROOF_H

#include "icd/selftest/selftest.h"

/* Runs the self-test as a job.  NO_SAMPLE: climport can make no dma-buf here. */
enum tested khr_prove(cl_device_id device);

#endif /* ICD_METHODS_KHR_PROOF_H */
