/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process initializes Vulkan once, so each test runs in a new process: FRESH(name, says).
 * FRESH_EACH(name, struct row, rows, says) is likewise TEST_EACH().
 */
#ifndef TESTS_IMPORT_VULKAN_FIXTURE_H
#define TESTS_IMPORT_VULKAN_FIXTURE_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "fake_vulkan.h"
#include "harness.h"
#include "process.h"
#include "import/nvidia/vulkan/vulkan.h"
#include "opaque.h"
#include "util/log.h"

#define PAGE 4096
#define SIZE (16 * PAGE)
#define STEP "CLIMPORT_TEST_STEP"

extern const unsigned char uuid_1[16], uuid_2[16], uuid_unknown[16];

/* Runs a test of the program in a new process; step_number() returns @step in the new process. */
int step_spawn(const char *name, int step);

int step_number(void);

/* Whether the process is the new process of a test. */
bool step_is_fresh(void);

/* Runs the test, or the test's row, in a new process.  The status 77 is a skip. */
void step_run_fresh(const char *name, const char *row_name);

#define FRESH(id, says)                            \
	static void fresh_##id(void);              \
	TEST(id, says)                             \
	{                                          \
		if (step_is_fresh())               \
			fresh_##id();              \
		else                               \
			step_run_fresh(#id, NULL); \
	}                                          \
	static void fresh_##id(void)

#define FRESH_EACH(id, type, rows, says)                \
	static void fresh_##id(const type *row);        \
	TEST_EACH(id, type, rows, says)                 \
	{                                               \
		if (step_is_fresh())                    \
			fresh_##id(row);                \
		else                                    \
			step_run_fresh(#id, row->name); \
	}                                               \
	static void fresh_##id(const type *row)

char *vulkan_map_host(size_t size);

struct imported {
	struct vulkan_memory *memory;
	int fd;
};

int vulkan_import_on(const unsigned char *uuid, void *p, size_t size, struct imported *out);

void imported_drop(struct imported *imported);

/* Expects an import to work, and frees the import. */
void import_works(void);

int try_import(void *p, size_t size);

/* After everything was freed the shared devices are left, and nothing else. */
void expect_clean(unsigned int devices);

bool is_loaded(void);

#endif
