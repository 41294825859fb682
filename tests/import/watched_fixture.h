/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of host memory that the kernel module watches, on the fakes of RM and of the module.  Each
 * test is a process of its own: what was imported lately is a matter of the process.
 */
#ifndef TESTS_IMPORT_WATCHED_FIXTURE_H
#define TESTS_IMPORT_WATCHED_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "driver_fixture.h"
#include "fake_gdmabuf.h"
#include "fake_rm.h"
#include "harness.h"
#include "process.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define SIZE (16 * PAGE)

/* At @at, or anywhere for 0. */
uintptr_t watched_map_large(uintptr_t at, size_t size, int flags);
uintptr_t watched_map_at(uintptr_t at, int flags);

/* Anonymous private memory anywhere. */
uintptr_t watched_map(void);

/* The address gets other pages, and the module tells. */
void watched_remap(uintptr_t p);
void watched_unmap(uintptr_t p);

/* The module is loaded, and RM works. */
void watched_reset(void);

/* Runs the body, which leaves no fault in the log. */
void watched_run(void (*body)(void));

#define WATCHED_TEST(id, sentence)         \
	static void watched_##id(void);    \
	TEST(id, sentence)                 \
	{                                  \
		watched_run(watched_##id); \
	}                                  \
	static void watched_##id(void)

/* The thread waits for the idle thread, however busy the machine is. */
extern _Thread_local bool watched_is_patient;

/* A range with an idle registration: its name, or 0. */
uint64_t watched_register(uintptr_t p, size_t size);

/* The same, and an import has found the registration. */
uint64_t watched_use(uintptr_t p);

#endif
