/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, their primary contexts, and each thread's stack of contexts.  Callers hold the lock. */
#ifndef FAKE_CUDA_DEVICE_H
#define FAKE_CUDA_DEVICE_H

#include <stdbool.h>

struct context {
	int device;
	int refs;
};

/* @count devices with default attributes; the application holds each primary context. */
void device_reset(int count);

bool device_exists(int device);
struct context *device_get_primary(int device);

/* References to primary contexts, without the application's. */
int device_count_retained(void);

/* The context on top of the calling thread's stack, or NULL. */
struct context *context_get_current(void);

/* Contexts on the stacks of all threads. */
int context_count_pushed(void);

#endif
