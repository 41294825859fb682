/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of GPU memory begin and end with. */
#ifndef TESTS_KMOD_GPU_FIXTURE_H
#define TESTS_KMOD_GPU_FIXTURE_H

#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

enum { LENGTH = 8 * GPU_PAGE };

extern unsigned char bytes[LENGTH];

/* What a test has to begin with. */
struct setup {
	int gpu, ctx;
	uint64_t va;
	const volatile uint32_t *status;
	struct mock_stats before;
};

struct setup gpu_test_begin_flags(uint32_t flags);

struct setup gpu_test_begin(void);

/* How many things need the provider. */
int provider_users(void);

/* Nothing is left of it: no pin, no memory, no BAR space, nobody that needs the provider. */
void gpu_test_end(struct setup *s);

struct gdm_export gpu_export(const struct setup *s, uint32_t flags);

/* However slow the machine is. */
int pins_go(int gpu);

#endif
