/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport in a program, on a fake libcuda. */
#ifndef TESTS_LIB_FIXTURE_H
#define TESTS_LIB_FIXTURE_H

#include "harness.h"
#include "process.h"

#include <CL/climport.h>
#include <fake_cuda.h>
#include <sys/resource.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define G FAKE_CUDA_GRANULARITY

extern unsigned char uuid[2][CLIMPORT_UUID_SIZE];

struct climport_stats fixture_read_stats(void);

/* Resets the fake to two devices, and counts the held objects. */
void fixture_begin(void);

/* Expects the counts of fixture_begin(), of the driver's objects, descriptors and pinned bytes. */
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

/* A registration that must succeed. */
struct climport_registration fixture_register(uintptr_t address, size_t size);

/* The error of a registration; expects no change. */
int fixture_register_error(uintptr_t address, size_t size);

/* Skips the test if the kernel module is loaded. */
void fixture_skip_with_module(void);

/* For tests that close the library's own descriptors. */
void fixture_recount_descriptors(void);

/* Calls @run in a child.  Returns the status of waitpid(2); @text is the child's standard error. */
int fixture_run_child(void (*run)(void *arg), void *arg, char *text, size_t size);

/*
 * Runs the test @test in a new process with LIMITED in the environment.  The new process may have
 * @descriptors descriptors, from which the first registration derives limits.
 */
void fixture_run_limited(const char *test, rlim_t descriptors);

#endif
