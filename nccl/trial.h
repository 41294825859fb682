/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCL_TRIAL_H
#define NCCL_TRIAL_H

#include "nccl/transport.h"

/*
 * Whether the device takes memory of the calling thread's GPU: a small allocation is exported and
 * mapped, and flushed if the GPU needs flushes.  The core treats a refusal of its own buffers as fatal, so a promise has to be true.
 */
bool trial_passes(const struct transport *transport, int device);

#endif /* NCCL_TRIAL_H */
