/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test: an import must be memory provably shared by devices and the host. */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

/* Imports of both types are refused, with a sentence. */
static void selftest_expect_refused(cl_context context)
{
	int fd = fake_dmabuf_create("a", 4096);

	EXPECT_EQ(fixture_import_error(context, 0, NULL, pages_map(1), 4096), CL_INVALID_PROPERTY);
	EXPECT_EQ(fixture_import_error(context, 0, fixture_dma_buf, &fd, 4096),
		  CL_INVALID_PROPERTY);
	EXPECT_EQ(process_count_mappings("fake-dmabuf"), 0);
	close(fd);
}

static void expect_copying_refused(enum stub_option option, long value)
{
	fixture_reset();
	stub_set(option, value);
	fixture_open();
	EXPECT(!fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	selftest_expect_refused(fix.context);
	EXPECT_EQ(fix.notices, 2);
	fixture_close();
}

TEST(copies_around_kernels, "A driver that copies before and after each kernel is refused.")
{
	expect_copying_refused(STUB_COPYING, 1);
}

TEST(copies_at_map, "A driver that copies at map and unmap is refused.")
{
	expect_copying_refused(STUB_COPYING_MAP, 1);
}

TEST(host_does_not_see_device, "If the host does not see a driver's writes, the driver is refused.")
{
	expect_copying_refused(STUB_LOST_WRITES, 1);
}

TEST(device_does_not_see_host,
     "If a driver does not see the host's later writes, the driver is refused.")
{
	expect_copying_refused(STUB_STALE_READS, 1);
}

TEST(kernel_does_not_run, "If a driver's kernels fail, the driver is refused.")
{
	expect_copying_refused(STUB_KERNEL_FAIL, -5);
}

TEST(lazy_driver, "A driver that starts nothing before a flush is accepted.")
{
	fixture_reset();
	stub_set(STUB_LAZY, 1);
	fixture_open();
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	fixture_close();
}

TEST(per_device, "Each device of a platform has its own result.")
{
	fixture_reset();
	stub_set(STUB_DEVICES, 3);
	stub_set(STUB_COPYING, 2);
	fixture_open();
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	EXPECT(!fixture_device_reports(fix.device[1], "cl_arm_import_memory_host"));
	EXPECT(fixture_device_reports(fix.device[2], "cl_arm_import_memory_host"));
	fixture_close();
}

TEST(every_device, "Every device of a context must pass the self-test.")
{
	unsigned char *memory;
	cl_context context;
	cl_device_id good[2];
	cl_int err;
	cl_mem mem;

	fixture_reset();
	stub_set(STUB_DEVICES, 3);
	stub_set(STUB_COPYING, 2);
	fixture_open();
	selftest_expect_refused(fix.context);
	context = cl.clCreateContext(NULL, 1, &fix.device[1], NULL, NULL, &err);
	selftest_expect_refused(context);
	cl.clReleaseContext(context);
	good[0] = fix.device[0];
	good[1] = fix.device[2];
	context = cl.clCreateContext(NULL, 2, good, NULL, NULL, &err);
	memory = pages_map(1);
	mem = fix.import(context, 0, NULL, memory, 4096, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(mem);
	cl.clReleaseContext(context);
	fixture_close();
}

TEST(once, "The self-test runs once for a device, and leaves no object.")
{
	unsigned long builds;
	cl_context given;
	long alive;

	fixture_reset();
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	fixture_open();
	given = fix.context;
	builds = stub_calls("clBuildProgram");
	alive = stub_live_all();
	fix.context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, NULL);
	for (int i = 0; i < 3; i++)
		EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	for (int i = 0; i < 3; i++)
		cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), 4096));
	EXPECT_EQ(stub_calls("clBuildProgram"), builds + 1);
	cl.clReleaseContext(fix.context);
	EXPECT(stub_live_settles(alive));
	fix.context = given;
	fixture_close();
}

TEST(compiled_once,
     "The self-test's kernels are compiled once for a context, whatever the context imports.")
{
	unsigned long builds;

	fixture_reset();
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	fixture_open();
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), 4096));
	builds = stub_calls("clBuildProgram");
	for (size_t count = 2; count <= 64; count *= 2)
		cl.clReleaseMemObject(fixture_import_host(0, pages_map(count), count * 4096));
	EXPECT_EQ(stub_calls("clBuildProgram"), builds);
	fixture_close();
}

TEST(no_compiler, "If a device runs native kernels, the self-test does not use the compiler.")
{
	fixture_reset();
	fixture_open();
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), 4096));
	EXPECT_EQ(stub_calls("clBuildProgram"), 1); /* the fixture's own */
	fixture_close();
}

TEST(compiled_copies, "If a driver copies, a self-test with compiled kernels refuses the driver.")
{
	fixture_reset();
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	stub_set(STUB_COPYING, 1);
	fixture_open();
	EXPECT(!fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	selftest_expect_refused(fix.context);
	fixture_close();
}

static void small_stacks_body(void)
{
	pthread_attr_t small;

	fixture_reset();
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	fixture_open();
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	EXPECT_EQ(pthread_setattr_default_np(&small), 0);
	stub_set(STUB_STACK, 1 << 20);
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), 4096));
	fixture_close();
}

TEST(small_stacks,
     "The self-test compiles on a stack that does not depend on the program's default stack size.")
{
	test_in_child(small_stacks_body);
}

TEST(not_available, "If a device is unavailable in its self-test, the import fails with "
		    "CL_OUT_OF_RESOURCES and a sentence, and "
		    "the next import asks again.")
{
	fixture_reset();
	fixture_open();
	stub_fail("clCreateContext", 1, CL_DEVICE_NOT_AVAILABLE);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), 4096),
		  CL_OUT_OF_RESOURCES);
	EXPECT(stub_failed());
	EXPECT(strstr(fix.notice, "it is unknown whether device 0 of the context supports "
				  "cl_arm_import_memory_host: "));
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), 4096));
	fixture_close();
}

static void no_proc_body(void)
{
	fixture_reset();
	fixture_open();
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    umount2("/proc", MNT_DETACH))
		test_skip("/proc cannot be unmounted");
	EXPECT(!fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), 4096),
		  CL_OUT_OF_RESOURCES);
	EXPECT(strstr(fix.notice, "/proc"));
	fixture_close();
}

TEST(no_proc, "Without /proc no extension is reported, and imports return an error.")
{
	test_in_child(no_proc_body);
}

/* With a bad habit, the device takes host memory, and refuses dma-bufs. */
static void expect_no_dmabufs(enum stub_option habit)
{
	int fd;

	stub_set(habit, 1);
	fixture_open();
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	fd = fake_dmabuf_create("a", 4096);
	EXPECT_EQ(fixture_import_error(fix.context, 0, fixture_dma_buf, &fd, 4096),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "user events, or their callbacks, do not work"));
	close(fd);
	fixture_release();
}

TEST(finish_returns_early,
     "A device whose clFinish does not wait for user events takes no dma-bufs.")
{
	fixture_reset();
	expect_no_dmabufs(STUB_FINISH_EARLY);
}

TEST(no_callbacks, "A device whose events never call back takes no dma-bufs.")
{
	fixture_reset();
	expect_no_dmabufs(STUB_NO_CALLBACK);
}

/* When a driver runs the commands whose callbacks come late. */
static const struct pace {
	const char *name;
	enum stub_option option;
	long value;
} paces[] = {
	{ "in_finish", STUB_LAZY, 1 },	       /* oclgrind */
	{ "at_once", STUB_ENQUEUE_DELAY, 20 }, /* the queue is empty before the next command */
};

TEST_EACH(late_callbacks, struct pace, paces,
	  "A device that calls back only when its queue is empty takes no dma-bufs.")
{
	fixture_reset();
	stub_set(row->option, row->value);
	expect_no_dmabufs(STUB_CALLBACK_LATE);
}

TEST(not_before_it_is_needed, "A program that does not use the extension runs no self-test.")
{
	fixture_reset();
	fixture_open();
	EXPECT_EQ(stub_calls("clBuildProgram"), 1); /* the fixture's own */
	fixture_close();
}

/* Alignments of addresses and sizes that a driver does not copy. */
static const struct alignment {
	const char *name;
	long bytes;
} alignments[] = { { "64", 64 }, { "4096", 4096 } };

TEST_EACH(alignment, struct alignment, alignments,
	  "If only aligned memory is shared, memory that a sub-buffer cannot begin at is "
	  "CL_INVALID_OPERATION.")
{
	unsigned char *memory;

	fixture_reset();
	stub_set(STUB_ZERO_COPY_ALIGN, row->bytes);
	fixture_open();
	memory = pages_map(2);
	cl.clReleaseMemObject(fixture_import_host(0, memory, 4096));
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, memory + 1, 4096),
		  CL_INVALID_OPERATION);
	cl.clReleaseMemObject(fixture_import_host(0, memory, 4095));
	if (row->bytes > 64)
		EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, memory + 64, 4096),
			  CL_INVALID_OPERATION);
	else
		cl.clReleaseMemObject(fixture_import_host(0, memory + 64, 192));
	fixture_close();
}

TEST(copied_images, "If images over host memory are copies, 2D images on imports are refused.")
{
	cl_mem mem;
	cl_int err;

	fixture_reset();
	stub_set(STUB_COPYING_IMAGES, 1);
	fixture_open();
	mem = fixture_import_host(0, pages_map(1), 4096);
	EXPECT(!fixture_try_image(0, mem, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	EXPECT(fix.notices > 0);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(native_images,
     "If a driver can make images from buffers, the driver makes the 2D images on imports.")
{
	cl_mem mem, image, parent;
	cl_int err;

	fixture_reset();
	stub_set(STUB_COPYING_IMAGES, 1);
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	fixture_open();
	mem = fixture_import_host(0, pages_map(1), 4096);
	cl.clReleaseMemObject(fixture_try_image(0, mem, &err)); /* tests images */
	image = fixture_try_image(0, mem, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(stub_arg("clCreateImage", 6) == (uintptr_t)mem);
	EXPECT_EQ(cl.clGetImageInfo(image, CL_IMAGE_BUFFER, sizeof(parent), &parent, NULL),
		  CL_SUCCESS);
	EXPECT(parent == mem);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(mem);
	fixture_close();
}
