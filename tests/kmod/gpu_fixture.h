/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of the tests of GPU memory. */
#ifndef TESTS_KMOD_GPU_FIXTURE_H
#define TESTS_KMOD_GPU_FIXTURE_H

#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

enum { LENGTH = 8 * GPU_PAGE };

extern unsigned char bytes[LENGTH];

/* The mock GPU with an allocation of LENGTH bytes, and a context with its status page. */
struct setup {
	int gpu, ctx;
	uint64_t va;
	const volatile uint32_t *status;
	struct mock_stats before;
};

struct setup gpu_test_begin_flags(uint32_t flags);

struct setup gpu_test_begin(void);

/* The reference count of the provider's module. */
int provider_users(void);

/*
 * Ends a test and checks that no pin, GPU memory, BAR space or reference to the provider is left.
 */
void gpu_test_end(struct setup *s);

struct gdm_export gpu_export(const struct setup *s, uint32_t flags);

/* Waits for the last pin to go, half a minute at most.  Returns whether all pins are gone. */
int pins_go(int gpu);

#endif
