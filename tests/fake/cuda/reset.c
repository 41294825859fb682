/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"
#include "driver.h"
#include "fake_cuda.h"
#include "range.h"
#include "vmm.h"

#include <stdio.h>
#include <stdlib.h>

API void fake_cuda_reset(int devices)
{
	driver_lock();
	driver_reset();
	device_reset(devices);
	pointer_reset();
	dma_buf_reset();
	fake_cuda_set_busy(false);
	driver_unlock();
}

__attribute__((constructor)) static void fake_cuda_begin(void)
{
	const char *devices = getenv("FAKE_CUDA_DEVICES");

	if (!devices)
		return;
	fake_cuda_reset(atoi(devices));
	fake_cuda_uninitialize();
}

API struct fake_cuda_held fake_cuda_held(void)
{
	struct fake_cuda_held held = { 0 };

	driver_lock();
	held.handles = handle_count();
	held.reservations = reservation_count();
	held.primaries = device_count_retained();
	held.pushed = context_count_pushed();
	for (const struct range *r = range_first(); r; r = r->next)
		(*(r->kind == KIND_VMM ? &held.mappings : &held.allocations))++;
	driver_unlock();
	return held;
}

static bool count_matches(const char *what, int held, int expected)
{
	if (held != expected)
		printf("# fake CUDA: %d %s held, %d expected\n", held, what, expected);
	return held == expected;
}

API bool fake_cuda_holds(const struct fake_cuda_held *expected)
{
	const struct fake_cuda_held held = fake_cuda_held();
	int matches = 0;

	matches += count_matches("allocations", held.allocations, expected->allocations);
	matches += count_matches("handles", held.handles, expected->handles);
	matches += count_matches("mappings", held.mappings, expected->mappings);
	matches += count_matches("reservations", held.reservations, expected->reservations);
	matches += count_matches("primary contexts", held.primaries, expected->primaries);
	matches += count_matches("pushed contexts", held.pushed, expected->pushed);
	return matches == 6;
}
