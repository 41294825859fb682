/* SPDX-License-Identifier: Apache-2.0 */
#include "random.h"

#include <limits.h>
#include <stddef.h>

static _Thread_local uint64_t state;

/* The generator (xorshift) never leaves the state 0. */
void fuzz_seed(uint64_t seed)
{
	state = seed | 1;
}

uint64_t fuzz_any64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

uint32_t fuzz_any(uint32_t n)
{
	return (uint32_t)(fuzz_any64() >> 20) % n;
}

uint64_t fuzz_any_edge(void)
{
	static const uint64_t edges[] = {
		0,
		1,
		2,
		0xfff,
		0x1000,
		0xffff,
		0x10000,
		0x20000,
		INT_MAX,
		1ULL << 31,
		UINT_MAX,
		1ULL << 32,
		1ULL << 43,
		(1ULL << 43) - 0x1000,
		0x7ffffffff000,
		0x800000000000,
		0xffff888000000000,
		0xfffffffff0000000,
		-0x10000ULL,
		-0x1000ULL,
		UINT64_MAX,
	};
	uint64_t value = edges[fuzz_any(sizeof(edges) / sizeof(edges[0]))];

	switch (fuzz_any(8)) {
	case 0:
		return fuzz_any64();
	case 1:
		return value + fuzz_any(3) - 1;
	case 2:
		return fuzz_any64() >> fuzz_any(64);
	}
	return value;
}

uint32_t fuzz_any_flags(uint32_t known)
{
	return fuzz_any(30) ? (uint32_t)fuzz_any64() & known : (uint32_t)fuzz_any_edge();
}

uint32_t fuzz_any_size(uint32_t size)
{
	return fuzz_any(20) ? size : (uint32_t)fuzz_any_edge() % 200;
}

void *fuzz_any_argument(void *argument)
{
	switch (fuzz_any(60)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(uintptr_t)fuzz_any_edge();
	}
	return argument;
}
