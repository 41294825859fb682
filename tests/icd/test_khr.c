/* SPDX-License-Identifier: Apache-2.0 */
/* The method khr, of which the layer has a row that takes no memory yet. */
#include "fixture.h"

#include <unistd.h>

static const cl_import_properties_arm khr_dma_buf[] = { CL_IMPORT_TYPE_ARM,
							CL_IMPORT_TYPE_DMA_BUF_ARM, 0 };

static void khr_open(enum stub_option option, long value)
{
	fixture_reset();
	stub_set(STUB_KHR_DMABUF, 1);
	stub_set(option, value);
	fixture_open();
}

TEST(dma_buf_refused, "A device that copies host memory refuses a dma-buf, and the refusal names "
		      "the extension by which the device takes dma-bufs.")
{
	int fd;

	khr_open(STUB_COPYING, 1);
	fd = fake_dmabuf_create("a", 4096);
	EXPECT_EQ(fixture_import_error(fix.context, 0, khr_dma_buf, &fd, 4096),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice,
		      "by cl_khr_external_memory_dma_buf, which climport does not use"));
	fixture_close();
	close(fd);
}

TEST(host_refused, "The refusal of host memory does not name an extension for dma-bufs.")
{
	khr_open(STUB_COPYING, 1);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), 4096),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "CL_MEM_USE_HOST_PTR copies on this device"));
	fixture_close();
}

TEST(dma_buf_by_host_ptr, "A device that is zero copy for host memory takes a dma-buf by its "
			  "mapping, also if the device has the extension.")
{
	cl_mem mem;
	int fd;

	khr_open(STUB_COPYING, 0);
	fd = fake_dmabuf_create("a", 4096);
	mem = fixture_import_dmabuf(fd, 4096);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	fixture_close();
	close(fd);
}

static bool khr_nothing_runs(void *threads)
{
	return process_count_threads() <= *(int *)threads;
}

TEST(hanging_driver,
     "A device whose self-test hangs is refused for the hang, not by the extension.")
{
	int fd, threads;

	khr_open(STUB_HANG, 0);
	threads = process_count_threads();
	fd = fake_dmabuf_create("a", 4096);
	stub_set(STUB_HANG, 1);
	EXPECT_EQ(fixture_import_error(fix.context, 0, khr_dma_buf, &fd, 4096),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "did not end within 5 seconds"));
	stub_set(STUB_HANG, 0);
	EXPECT(process_settles(khr_nothing_runs, &threads));
	fixture_close();
	close(fd);
}
