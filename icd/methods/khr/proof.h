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

enum khr_memory {
	KHR_DMABUF, /* a dma-buf, which the CPU maps */
	KHR_PAGES,  /* host memory, of whose pages a dma-buf is made */
};

/*
 * Runs the self-test on a device.  NO_SAMPLE: climport can make
 * no such memory here.
 */
enum tested khr_prove(cl_device_id device, enum khr_memory memory);

#endif /* ICD_METHODS_KHR_PROOF_H */
