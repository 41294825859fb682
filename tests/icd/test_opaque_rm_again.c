/* SPDX-License-Identifier: Apache-2.0 */
/* Self-tests of the method opaque_fd that could not run, or hung, and run again. */
#include "clock_ahead.h"
#include "opaque_rm_fixture.h"

#define HOUR 3600 /* seconds */

/* No other method than opaque_fd is zero copy. */
static void again_open_with_cache(void)
{
	opaque_rm_reset();
	stub_set(STUB_COPYING, 1);
	setenv("CLIMPORT_NVIDIA_BY", "rm", 1);
	setenv("CLIMPORT_PROBE", "off", 1);
	fixture_open();
}

static void again_open(void)
{
	again_open_with_cache();
	setenv("XDG_CACHE_HOME", "/proc/none", 1);
}

/* From now on no context can be created: self-tests create contexts, and imports do not. */
static void again_begin_shortage(void)
{
	stub_set(STUB_FAULT_STAYS, 1);
	stub_fail("clCreateContext", 1, CL_OUT_OF_RESOURCES);
}

static void again_end_shortage(void)
{
	stub_fail(NULL, 0, CL_SUCCESS);
	stub_set(STUB_FAULT_STAYS, 0);
}

static void again_expect_import(unsigned char *p)
{
	cl_mem mem = fixture_import_host(0, p, PAGE);

	opaque_rm_expect_coherent(mem, p);
	cl.clReleaseMemObject(mem);
}

/* Also the next call fails, and so on. */
static void again_fail_cuda(void *nothing)
{
	(void)nothing;
	fake_cuda_fail("cuMemCreate", 1, 2);
	fake_cuda_at("cuMemCreate", 1, again_fail_cuda, NULL);
}

static void again_import(void)
{
	again_expect_import(pages_map(1));
}

static void again_query(void)
{
	fixture_device_reports(fix.device[0], "cl_arm_import_memory");
}

/* Calls of the program that look at the results of a device again. */
static const struct again_look {
	const char *name;
	void (*look)(void);
} again_looks[] = { { "import", again_import }, { "query", again_query } };

TEST_EACH(
	rm_stays_proved, struct again_look, again_looks,
	"If CUDA's memory could not be tested, and RM's memory is proved, RM's memory is imported "
	"also after a shortage in later self-tests.")
{
	again_open();
	again_fail_cuda(NULL);
	row->look();
	again_expect_import(pages_map(1));
	again_begin_shortage();
	for (int i = 0; i < 5; i++) {
		row->look();
		again_expect_import(pages_map(1));
		clock_ahead += HOUR;
	}
	again_end_shortage();
	again_expect_import(pages_map(1));
	fake_cuda_at(NULL, 0, NULL, NULL);
	opaque_rm_close();
}
