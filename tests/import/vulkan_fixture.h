/* SPDX-License-Identifier: Apache-2.0 */
/* A process initializes Vulkan once, so each test runs in a new process: FRESH(name, says). */
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

/* Runs a test @steps times, each time in a new process.  The status 77 is a skip. */
void step_run_fresh(const char *name, int steps, void (*run)(void));

#define FRESH_STEPS(name, steps, says)                        \
	static void fresh_##name(void);                       \
	TEST(name, says)                                      \
	{                                                     \
		step_run_fresh(#name, (steps), fresh_##name); \
	}                                                     \
	static void fresh_##name(void)

#define FRESH(name, says) FRESH_STEPS(name, 1, says)

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
