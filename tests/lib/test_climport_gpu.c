/* SPDX-License-Identifier: Apache-2.0 */
/* climport_get_current_gpu(). */
#include "fixture.h"

#include <errno.h>

#define COMPUTE_MAJOR 75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */

static void *gpu_context;

static void current_gpu_begin(int device, int major)
{
	gpu_context = fake_cuda_context_create(device);
	fake_cuda_set_attribute(device, COMPUTE_MAJOR, major);
	fake_cuda_set_current(gpu_context);
}

static void current_gpu_end(void)
{
	fake_cuda_set_current(NULL);
	fake_cuda_context_destroy(gpu_context);
}

static const struct flush_row {
	const char *name;
	int major;
	uint32_t needs_flush;
} flush_rows[] = {
	{ "7", 7, 1 },
	{ "8", 8, 1 },
	{ "9", 9, 0 },
	{ "10", 10, 0 },
};

TEST_EACH(gpu_flush, struct flush_row, flush_rows,
	  "A GPU before compute capability 9.0 needs a flush, and a later GPU needs none.")
{
	struct climport_gpu gpu;

	fixture_begin();
	current_gpu_begin(0, row->major);
	EXPECT_EQ(climport_get_current_gpu(&gpu, sizeof(gpu)), 0);
	EXPECT_EQ(gpu.needs_flush, row->needs_flush);
	current_gpu_end();
	fixture_end();
}

LIB_TEST(gpu_uuid, "The GPU is that of the thread's context, which stays current.")
{
	struct climport_gpu gpu;

	current_gpu_begin(1, 9);
	EXPECT_EQ(climport_get_current_gpu(&gpu, sizeof(gpu)), 0);
	EXPECT(!memcmp(gpu.uuid, uuid[1], sizeof(gpu.uuid)));
	EXPECT(fake_cuda_current() == gpu_context);
	EXPECT_EQ(fake_cuda_retains(1), 0);
	current_gpu_end();
}

/* The error, which leaves the struct alone. */
static int gpu_error(void)
{
	struct climport_gpu gpu = { .needs_flush = 42 };
	int ret = climport_get_current_gpu(&gpu, sizeof(gpu));

	EXPECT_EQ(gpu.needs_flush, 42);
	return ret;
}

LIB_TEST(gpu_no_context, "-ENODEV for a thread without a CUDA context, with a sentence.")
{
	EXPECT_EQ(gpu_error(), -ENODEV);
	EXPECT(strstr(climport_last_error(), "context"));
}

LIB_TEST(gpu_not_initialized, "-ENODEV before the program has initialized CUDA.")
{
	fake_cuda_uninitialize();
	EXPECT_EQ(gpu_error(), -ENODEV);
	fake_cuda_reset(2);
}

static const struct failing_row {
	const char *name, *function;
} failing_rows[] = {
	{ "attribute", "cuDeviceGetAttribute" },
	{ "uuid", "cuDeviceGetUuid_v2" },
};

TEST_EACH(gpu_failing, struct failing_row, failing_rows, "-EIO if the driver's call fails.")
{
	fixture_begin();
	current_gpu_begin(0, 9);
	fake_cuda_fail(row->function, 1, 1);
	EXPECT_EQ(gpu_error(), -EIO);
	EXPECT(fake_cuda_has_failed());
	current_gpu_end();
	fixture_end();
}
