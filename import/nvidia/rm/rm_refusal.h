/* SPDX-License-Identifier: Apache-2.0 */
/* Why dma-bufs of device memory are refused: a clause that imports and `climport diag` share. */
#ifndef IMPORT_NVIDIA_RM_RM_REFUSAL_H
#define IMPORT_NVIDIA_RM_RM_REFUSAL_H

#define RM_REFUSAL                                                                           \
	"nothing proves that a GPU of NVIDIA's reaches the memory of another device, and a " \
	"kernel "                                                                            \
	"that does not reach it loses the context"

#endif
