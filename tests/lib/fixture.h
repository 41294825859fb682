/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport as a program uses it, on a fake libcuda. */
#ifndef TESTS_LIB_FIXTURE_H
#define TESTS_LIB_FIXTURE_H

#include "harness.h"
#include "process.h"

#include <CL/climport.h>
#include <fake_cuda.h>
#include <sys/resource.h>

#define PAGE ((size_t)4096)
#define G FAKE_CUDA_GRANULARITY

extern unsigned char uuid[2][CLIMPORT_UUID_SIZE];

struct climport_stats fixture_read_stats(void);

/* Two devices, and what is held now. */
void fixture_begin(void);

/* No more is held than at the beginning, by the driver, in descriptors and by the library. */
void fixture_end(void);

#define LIB_TEST(id, sentence)     \
	static void in_##id(void); \
	TEST(id, sentence)         \
	{                          \
		fixture_begin();   \
		in_##id();         \
		fixture_end();     \
	}                          \
	static void in_##id(void)

/* For tests that close what the library opened once. */
void fixture_recount_descriptors(void);

/* The status of a child that calls @run: what waitpid(2) gives; its standard error in @text. */
int fixture_run_child(void (*run)(void *arg), void *arg, char *text, size_t size);

/*
 * Runs the test @test of this program in a process of its own, with LIMITED in the environment: the
 * first registration fixes limits by how many @descriptors the process may have.
 */
void fixture_run_limited(const char *test, rlim_t descriptors);

#endif
