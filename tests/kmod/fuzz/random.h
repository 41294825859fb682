/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers for the fuzzer.  Each thread has a generator, and makes a known sequence of calls
 * from a known seed.
 */
#ifndef TESTS_KMOD_FUZZ_RANDOM_H
#define TESTS_KMOD_FUZZ_RANDOM_H

#include <stdint.h>

/* Seeds the calling thread's generator. */
void fuzz_seed(uint64_t seed);

uint64_t fuzz_any64(void);

/* A number below @n. */
uint32_t fuzz_any(uint32_t n);

/* Mostly a number at or beside a limit: of a page, of 32 bits, of the address space. */
uint64_t fuzz_any_edge(void);

/* Mostly a subset of the flags @known. */
uint32_t fuzz_any_flags(uint32_t known);

/* Arguments of an ioctl.  Mostly the right size and the right pointer. */
uint32_t fuzz_any_size(uint32_t size);
void *fuzz_any_argument(void *argument);

#endif
