/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers with a host pointer in place, over the fake of NVIDIA's resource manager. */
#include "in_place.h"
#include "opaque_rm_fixture.h"

#include <CL/climport.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RM_PAGES = 16 };

static void rm_in_place_open(void)
{
	opaque_rm_reset();
	stub_set(STUB_COPYING_MAP, 1);
	stub_set(STUB_OPAQUE_STAGED, 1);
	setenv("CLIMPORT_HOST_PTR", "1", 1);
	opaque_rm_open();
	cl.clReleaseMemObject(test_in_place_create(0, pages_map(1), PAGE));
	opaque_rm_settle(0);
}

static void rm_in_place_close(void)
{
	opaque_rm_settle(0);
	opaque_rm_close();
	unsetenv("CLIMPORT_HOST_PTR");
}

TEST(rm_in_place,
     "A buffer on RM's memory is coherent: no map, marker or event is needed between host and "
     "kernels.")
{
	unsigned long markers, events;
	unsigned char *p;
	cl_mem mem;

	rm_in_place_open();
	p = pages_map(2);
	mem = test_in_place_create(0, p + ALIGN, PAGE);
	markers = stub_calls("clEnqueueMarkerWithWaitList");
	events = stub_calls("clCreateUserEvent");
	opaque_rm_expect_coherent(mem, p + ALIGN);
	EXPECT_EQ(stub_calls("clEnqueueMarkerWithWaitList"), markers);
	EXPECT_EQ(stub_calls("clCreateUserEvent"), events);
	cl.clReleaseMemObject(mem);
	rm_in_place_close();
}

TEST(rm_in_place_released, "The end of a buffer in place gives pages and descriptor back.")
{
	struct fake_rm_held before, after;
	int descriptors;
	cl_mem mem;

	rm_in_place_open();
	before = fake_rm_held();
	descriptors = process_count_descriptors();
	mem = test_in_place_create(CL_MEM_READ_ONLY, pages_map(2), 2 * PAGE);
	EXPECT_EQ(fake_rm_held().memories, before.memories + 1);
	EXPECT_EQ(process_count_descriptors(), descriptors + 1);
	cl.clReleaseMemObject(mem);
	opaque_rm_settle(0);
	after = fake_rm_held();
	EXPECT_EQ(after.memories, before.memories);
	EXPECT_EQ(process_count_descriptors(), descriptors);
	rm_in_place_close();
}

TEST(rm_in_place_read_only, "RM pins no page for a buffer on pages that are mapped read-only.")
{
	unsigned int pins;
	unsigned char *p;

	rm_in_place_open();
	p = pages_map(1);
	EXPECT_EQ(mprotect(p, PAGE, PROT_READ), 0);
	pins = fake_rm.pins_made;
	cl.clReleaseMemObject(test_in_place_create_own(CL_MEM_READ_ONLY, p, PAGE));
	EXPECT_EQ(fake_rm.pins_made, pins);
	rm_in_place_close();
}

TEST(rm_in_place_fails,
     "If RM pins no pages, the driver makes the buffer, and the program sees no error.")
{
	unsigned char *p;
	cl_mem mem;

	rm_in_place_open();
	p = pages_map(1);
	fake_rm.refused = p;
	mem = test_in_place_create_own(0, p, PAGE);
	EXPECT_EQ(fix.notices, 0);
	EXPECT(!test_in_place_is(mem, p));
	cl.clReleaseMemObject(mem);
	rm_in_place_close();
}

TEST(rm_in_place_registered, "Buffers on memory that the program has registered share one pin.")
{
	struct climport_registration r;
	unsigned int pins;
	unsigned char *p;

	rm_in_place_open();
	p = mmap(NULL, RM_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(p != MAP_FAILED);
	EXPECT_EQ(climport_register(p, RM_PAGES * PAGE, 0, &r, sizeof(r)), 0);
	pins = fake_rm.pins_made;
	for (int i = 0; i < 2 * RM_PAGES; i++) {
		unsigned char *at = p + (size_t)(i % RM_PAGES) * PAGE;
		cl_mem mem = test_in_place_create(0, at, PAGE);

		EXPECT(test_in_place_is(mem, at));
		cl.clReleaseMemObject(mem);
	}
	EXPECT_EQ(fake_rm.pins_made, pins + 1);
	climport_unregister(&r);
	munmap(p, RM_PAGES * PAGE);
	rm_in_place_close();
}

/* A kernel on a dma-buf without an event, then a kernel on @second with an event. */
static void rm_in_place_expect_end(cl_mem dmabuf, cl_mem second)
{
	cl_kernel first_kernel = fixture_create_increment(dmabuf),
		  second_kernel = fixture_create_increment(second);
	cl_event done;

	for (int i = 0; i < 20; i++) {
		stub_trace_clear();
		EXPECT_EQ(fixture_enqueue(fix.queue, first_kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(fixture_enqueue(fix.queue, second_kernel, 0, NULL, &done), CL_SUCCESS);
		EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
		EXPECT_EQ(stub_trace_count("sync END"), 1);
		EXPECT_EQ(cl.clReleaseEvent(done), CL_SUCCESS);
	}
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseKernel(first_kernel), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseKernel(second_kernel), CL_SUCCESS);
}

TEST(rm_in_place_ends_brackets,
     "The event of a kernel on a buffer in place, or on an image of one, is behind the end of what "
     "earlier kernels of the queue did to a dma-buf.")
{
	int fd = fake_dmabuf_create("frame", PAGE);
	cl_mem dmabuf, buffer, image;

	rm_in_place_open();
	fake_rm.exporter = "udmabuf";
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	dmabuf = fixture_import_dmabuf(fd, PAGE);
	buffer = test_in_place_create(CL_MEM_READ_WRITE, pages_map(1), PAGE);
	image = fixture_create_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, buffer, 16, 0, 0);
	rm_in_place_expect_end(dmabuf, buffer);
	rm_in_place_expect_end(dmabuf, image);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(buffer);
	cl.clReleaseMemObject(dmabuf);
	close(fd);
	rm_in_place_close();
}
