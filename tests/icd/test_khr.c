/* SPDX-License-Identifier: Apache-2.0 */
/* The method khr, whose row in the layer takes no memory yet. */
#include "fixture.h"

#include <unistd.h>

static void khr_open(enum stub_option option, long value)
{
	fixture_reset();
	stub_set(STUB_KHR_DMABUF, 1);
	stub_set(option, value);
	fixture_open();
}

TEST(dma_buf_refused,
     "If a device copies host memory, a dma-buf is refused, and the message names the device's "
     "extension for dma-bufs.")
{
	int fd;

	khr_open(STUB_COPYING, 1);
	fd = fake_dmabuf_create("a", 4096);
	EXPECT_EQ(fixture_import_error(fix.context, 0, fixture_dma_buf, &fd, 4096),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice,
		      "by cl_khr_external_memory_dma_buf, which climport does not use"));
	fixture_close();
	close(fd);
}

TEST(host_refused,
     "The message for refused host memory does not name the device's extension for dma-bufs.")
{
	khr_open(STUB_COPYING, 1);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), 4096),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "CL_MEM_USE_HOST_PTR copies on this device"));
	fixture_close();
}

TEST(dma_buf_by_host_ptr,
     "If a device is zero copy for host memory, a dma-buf is imported by its mapping, with or "
     "without the extension.")
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

TEST(hanging_driver,
     "If a device's self-test hangs, the message for a refused dma-buf names the hang and not the "
     "extension.")
{
	int fd, threads;

	khr_open(STUB_HANG, 0);
	threads = process_count_threads();
	fd = fake_dmabuf_create("a", 4096);
	stub_set(STUB_HANG, 1);
	EXPECT_EQ(fixture_import_error(fix.context, 0, fixture_dma_buf, &fd, 4096),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "did not end within 5 seconds"));
	stub_set(STUB_HANG, 0);
	EXPECT(process_settles(process_threads_at_most, &threads));
	fixture_close();
	close(fd);
}
