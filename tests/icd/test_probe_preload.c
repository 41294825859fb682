/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs with preloaded libraries.  A probe process has the libraries that change the driver, and
 * none that watches the program.
 */
#include "probe.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Without a preloaded library, if @before is NULL. */
static int preload_query(const char *before, int (*query)(void))
{
	char list[512];

	setenv("STUB_PRELOADED", "1", 1);
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
	/* As the dynamic linker does for a program that is started with the list. */
	if (!dlopen(PRELOADED_PATH, RTLD_NOW | RTLD_GLOBAL))
		return 9;
	if (before) {
		snprintf(list, sizeof(list), "%s%s", before, PRELOADED_PATH);
		setenv("LD_PRELOAD", list, 1);
	}
	return query();
}

static int query_preloaded(void)
{
	return preload_query("", probe_query_platform);
}

TEST(driver_part, "A driver of which a part is preloaded has the part in the probe process, too.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(query_preloaded), 0);
}

static int query_kept_preloaded(void)
{
	return preload_query("", probe_query_kept);
}

static int query_kept_without(void)
{
	return preload_query(NULL, probe_query_kept);
}

TEST(another_preload,
     "An answer that was found out with a preloaded library holds for programs with the library "
     "alone.")
{
	probe_create_cache();
	EXPECT_EQ(probe_run_answered(query_preloaded), 0);
	EXPECT_EQ(probe_run_program(query_kept_preloaded), 0);
	EXPECT_EQ(probe_run_program(query_kept_without), 1);
}

/* The list of the program. */
static char preload_list[256];

static int query_with_list(void)
{
	setenv("LD_PRELOAD", preload_list, 1);
	return probe_query_platform();
}

static const struct runtime {
	const char *name;
} runtimes[] = {
	{ "libasan.so.8" },
	{ "libtsan.so.2" },
	{ "libubsan.so.1" },
	{ "liblsan.so.0" },
	{ "libhwasan.so.0" },
	{ "libclang_rt.asan-x86_64.so" },
	{ "vgpreload_memcheck-amd64-linux.so" },
};

TEST_EACH(watcher, struct runtime, runtimes,
	  "The runtime of a sanitizer, which watches the program, is not loaded into a probe "
	  "process, and the record "
	  "holds for programs without it.")
{
	char command[512];

	probe_create_cache();
	snprintf(command, sizeof(command), "cp %s %s/%s", PRELOADED_ENDING_PATH, probe_cache,
		 row->name);
	EXPECT_EQ(system(command), 0);
	snprintf(preload_list, sizeof(preload_list), "%s/%s", probe_cache, row->name);
	EXPECT_EQ(probe_run_answered(query_with_list), 0);
	EXPECT_EQ(probe_run_program(probe_query_kept), 0);
}

TEST(unknown_watcher, "A library that ends probe processes leaves no answer.")
{
	probe_create_cache();
	snprintf(preload_list, sizeof(preload_list), "%s", PRELOADED_ENDING_PATH);
	EXPECT_EQ(probe_run_program(query_with_list), 1);
}
