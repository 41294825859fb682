/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of the tests of GPU memory. */
#ifndef TESTS_KMOD_GPU_FIXTURE_H
#define TESTS_KMOD_GPU_FIXTURE_H

#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

enum { LENGTH = 8 * GPU_PAGE };

extern unsigned char bytes[LENGTH];

/* The mock GPU with an allocation of LENGTH bytes, and a context. */
struct setup {
	int gpu, ctx;
	uint64_t va;
	struct mock_stats before;
};

struct setup gpu_test_begin_flags(uint32_t flags);

struct setup gpu_test_begin(void);

/*
 * Ends a test and checks that no pin, GPU memory, BAR space or reference to the provider is left.
 */
void gpu_test_end(struct setup *s);

/* A dma-buf of the allocation. */
int gpu_export(const struct setup *s);

/* in_child(), with a quota of 1 MiB of GPU memory for each user. */
int in_child_with_quota(void (*body)(void *arg), void *arg);

#endif
