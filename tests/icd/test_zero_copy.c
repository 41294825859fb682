/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An import is zero copy or an error.  The tests' drivers copy some classes of memory only, and
 * pass the self-test for other classes.
 */
#include "fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static void *mapped;
static size_t mapped_size;

static void zero_copy_open(enum stub_option option, long value)
{
	fixture_reset();
	if (option < STUB_NUM_OPTIONS)
		stub_set(option, value);
	fixture_open();
}

static unsigned char *map_file(int fd, size_t size, int flags)
{
	EXPECT(fd >= 0);
	EXPECT_EQ(ftruncate(fd, (off_t)size), 0);
	mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	mapped_size = size;
	EXPECT(mapped != MAP_FAILED);
	close(fd);
	return mapped;
}

static int zero_copy_create_file(void)
{
	char name[] = "/var/tmp/climport-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	unlink(name);
	return fd;
}

static void zero_copy_unmap(void)
{
	munmap(mapped, mapped_size);
}

/* Either the import is refused, or a kernel works on the memory itself. */
static bool is_taken(cl_mem_flags flags, const cl_import_properties_arm *properties, void *memory,
		     size_t size, unsigned char *bytes)
{
	cl_int err = 1;
	cl_mem mem = fix.import(fix.context, flags, properties, memory, size, &err);

	EXPECT_EQ(mem == NULL, err != CL_SUCCESS);
	if (!mem) {
		EXPECT_EQ(err, CL_INVALID_OPERATION);
		return false;
	}
	if (flags == CL_MEM_READ_WRITE) {
		bytes[0] = 5;
		fixture_increment(mem);
		EXPECT_EQ(bytes[0], 6);
	}
	cl.clReleaseMemObject(mem);
	return true;
}

static bool zero_copy_takes(cl_mem_flags flags, unsigned char *memory, size_t size)
{
	return is_taken(flags, NULL, memory, size, memory);
}

static bool takes_dmabuf(void)
{
	int fd = fake_dmabuf_create("a", PAGE);
	unsigned char *bytes = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool taken = is_taken(CL_MEM_READ_WRITE, fixture_dma_buf, &fd, PAGE, bytes);

	munmap(bytes, PAGE);
	close(fd);
	return taken;
}

/* Drivers that copy host pointers of one kind of access. */
static const struct access {
	const char *name, *flag_name;
	enum stub_option copying;
	cl_mem_flags copied, shared;
} accesses[] = {
	{ "read_only", "CL_MEM_READ_ONLY", STUB_COPYING_READ_ONLY, CL_MEM_READ_ONLY,
	  CL_MEM_WRITE_ONLY },
	{ "write_only", "CL_MEM_WRITE_ONLY", STUB_COPYING_WRITE_ONLY, CL_MEM_WRITE_ONLY,
	  CL_MEM_READ_ONLY },
};

TEST_EACH(
	access, struct access, accesses,
	"If a driver copies host pointers with an access flag, imports with the flag are refused.")
{
	zero_copy_open(row->copying, 1);
	EXPECT(!zero_copy_takes(row->copied, pages_map(1), PAGE));
	EXPECT(strstr(fix.notice, row->flag_name) && strstr(fix.notice, "copied"));
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	EXPECT(zero_copy_takes(row->shared, pages_map(1), PAGE));
	fixture_close();
}

TEST(large, "If a driver copies large host pointers, only small imports succeed.")
{
	zero_copy_open(STUB_COPYING_ABOVE, 64 * 1024);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, pages_map(64), 64 * PAGE));
	EXPECT(strstr(fix.notice, "copied"));
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(8), 8 * PAGE));
	fixture_close();
}

TEST(threshold,
     "If a driver copies above a size between two powers of two, each import in between is proved.")
{
	zero_copy_open(STUB_COPYING_ABOVE, 96 * 1024);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(20), 20 * PAGE));
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(24), 24 * PAGE));
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, pages_map(25), 25 * PAGE));
	EXPECT(strstr(fix.notice, "works on a copy"));
	fixture_close();
}

TEST(threshold_gpu,
     "On a device that is no CPU, each import larger than the proved sizes is proved.")
{
	fixture_reset();
	stub_set(STUB_GPU, 1);
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	stub_set(STUB_COPYING_ABOVE, 96 * 1024);
	fixture_open();
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(8), 8 * PAGE));
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(20), 20 * PAGE));
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, pages_map(25), 25 * PAGE));
	EXPECT(strstr(fix.notice, "copied"));
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(24), 24 * PAGE));
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, pages_map(30), 30 * PAGE));
	fixture_close();
}

TEST(smallest, "An import of a few bytes is proved by as many bytes as a self-test needs.")
{
	zero_copy_open(STUB_NUM_OPTIONS, 0);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), 1));
	for (size_t size = 1; size < 20; size++)
		EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1) + 1, size));
	fixture_close();
}

/* Whether the driver copies the class of memory under test. */
static const struct habit {
	const char *name;
	bool copies;
} habits[] = { { "shares", false }, { "copies", true } };

static const struct mapping {
	const char *name;
	int flags;
} mappings[] = { { "private", MAP_PRIVATE }, { "shared", MAP_SHARED } };

TEST_EACH_PAIR(file, struct mapping, mappings, struct habit, habits,
	       "If a driver copies mappings of files, imports of private and shared mappings are "
	       "refused.")
{
	zero_copy_open(STUB_COPYING_FILES, column->copies);
	EXPECT_EQ(zero_copy_takes(CL_MEM_READ_WRITE,
				  map_file(zero_copy_create_file(), PAGE, row->flags), PAGE),
		  !column->copies);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	zero_copy_unmap();
	fixture_close();
}

TEST(shared, "If a driver copies shared memory, imports of shared memory are refused.")
{
	zero_copy_open(STUB_COPYING_SHARED, 1);
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE,
				map_file(memfd_create("test", 0), PAGE, MAP_SHARED), PAGE));
	EXPECT(strstr(fix.notice, "shared memory"));
	zero_copy_unmap();
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	fixture_close();
}

TEST(several_mappings, "If an import has several kinds of mappings, each kind has to be zero copy.")
{
	unsigned char *memory;
	int fd;

	zero_copy_open(STUB_COPYING_SHARED, 1);
	memory = pages_map(2);
	fd = memfd_create("test", 0);
	EXPECT_EQ(ftruncate(fd, PAGE), 0);
	EXPECT(mmap(memory + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	       memory + PAGE);
	close(fd);
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, memory, 2 * PAGE));
	fixture_close();
}

TEST_EACH(unwritable, struct habit, habits,
	  "If a driver copies memory that is mapped read-only, imports of such memory are refused.")
{
	unsigned char *memory;

	zero_copy_open(STUB_COPYING_UNWRITABLE, row->copies);
	memory = pages_map(1);
	EXPECT_EQ(mprotect(memory, PAGE, PROT_READ), 0);
	EXPECT_EQ(zero_copy_takes(CL_MEM_READ_ONLY, memory, PAGE), !row->copies);
	fixture_close();
}

static void open_gpu(void)
{
	fixture_reset();
	stub_set(STUB_GPU, 1);
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	fixture_open();
}

static const struct host_access {
	const char *name;
	cl_mem_flags flag;
} host_accesses[] = {
	{ "CL_MEM_HOST_NO_ACCESS", CL_MEM_HOST_NO_ACCESS },
	{ "CL_MEM_HOST_READ_ONLY", CL_MEM_HOST_READ_ONLY },
	{ "CL_MEM_HOST_WRITE_ONLY", CL_MEM_HOST_WRITE_ONLY },
};

TEST_EACH(
	host_access, struct host_access, host_accesses,
	"If a driver copies buffers with CL_MEM_HOST_* flags, imports with the flags are refused.")
{
	open_gpu();
	stub_set(STUB_COPYING_HOST_ACCESS, 1);
	EXPECT(!zero_copy_takes(CL_MEM_READ_ONLY | row->flag, pages_map(1), PAGE));
	EXPECT(strstr(fix.notice, row->name));
	EXPECT(zero_copy_takes(CL_MEM_READ_ONLY, pages_map(1), PAGE));
	stub_set(STUB_COPYING_HOST_ACCESS, 0);
	EXPECT(!zero_copy_takes(CL_MEM_READ_ONLY | row->flag, pages_map(1), PAGE));
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE | row->flag, pages_map(1), PAGE));
	fixture_close();
}

/* Two pages of anonymous memory, in two mappings. */
static unsigned char *two_mappings(void)
{
	unsigned char *memory = pages_map(2);

	EXPECT_EQ(madvise(memory + PAGE, PAGE, MADV_DONTFORK), 0);
	return memory;
}

TEST_EACH(split, struct habit, habits,
	  "If a driver copies memory of several mappings, imports of several mappings are refused.")
{
	zero_copy_open(STUB_COPYING_SEVERAL, row->copies);
	EXPECT_EQ(zero_copy_takes(CL_MEM_READ_WRITE, two_mappings(), 2 * PAGE), !row->copies);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(2), 2 * PAGE));
	fixture_close();
}

TEST(split_gpu, "A device that is no CPU refuses memory of several mappings.")
{
	open_gpu();
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, two_mappings(), 2 * PAGE));
	EXPECT(strstr(fix.notice, "several mappings"));
	fixture_close();
}

static const struct device_kind {
	const char *name;
	bool is_gpu;
} device_kinds[] = { { "cpu", false }, { "gpu", true } };

TEST_EACH(context, struct device_kind, device_kinds,
	  "If a driver copies in contexts of several devices, imports into such contexts are "
	  "refused.")
{
	cl_context several;
	cl_int err;

	fixture_reset();
	stub_set(STUB_GPU, row->is_gpu);
	stub_set(STUB_NO_NATIVE_KERNEL, row->is_gpu);
	stub_set(STUB_DEVICES, 2);
	stub_set(STUB_COPYING_CONTEXTS, 1);
	fixture_open();
	several = fix.context;
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	fix.context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, &err);
	EXPECT_EQ(fixture_import_error(several, 0, NULL, pages_map(1), PAGE), CL_INVALID_OPERATION);
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), PAGE));
	cl.clReleaseContext(fix.context);
	fix.context = several;
	fixture_close();
}

TEST(own_size, "A self-test pins no more memory than the import itself.")
{
	open_gpu();
	stub_set(STUB_PIN_LIMIT, 5 * PAGE);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(5), 5 * PAGE));
	fixture_close();
}

TEST(limit_of_the_moment,
     "If a driver had no room for a self-test, the next import runs the test again.")
{
	open_gpu();
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	stub_set(STUB_PIN_LIMIT, PAGE);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(5), 5 * PAGE),
		  CL_OUT_OF_RESOURCES);
	stub_set(STUB_PIN_LIMIT, 0);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(5), 5 * PAGE));
	fixture_close();
}

TEST(even_pages,
     "If a driver copies memory that does not begin at an even page, imports of whole pages are "
     "refused.")
{
	for (int i = 0; i < 8; i++) {
		fixture_reset();
		stub_set(STUB_GPU, 1);
		stub_set(STUB_NO_NATIVE_KERNEL, 1);
		stub_set(STUB_ZERO_COPY_ALIGN, 2 * PAGE);
		fixture_open();
		EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(2), 2 * PAGE),
			  CL_INVALID_PROPERTY);
		fixture_close();
		pages_map(1);
	}
}

static int tmpfs_file(void)
{
	char name[] = "/tmp/climport-tm/XXXXXX";

	return mkostemp(name, O_CLOEXEC);
}

static void tmpfs_mount(void)
{
	if (unshare(CLONE_NEWNS) ||
	    system("mkdir -p /tmp/climport-tm && mount --make-rprivate / && "
		   "mount -t tmpfs tmpfs /tmp/climport-tm"))
		test_skip("no file system can be mounted");
}

static void tmpfs_expect(const struct mapping *mapping, const struct habit *habit)
{
	open_gpu();
	stub_set(STUB_COPYING_TMPFS, habit->copies);
	EXPECT_EQ(zero_copy_takes(CL_MEM_READ_WRITE, map_file(tmpfs_file(), PAGE, mapping->flags),
				  PAGE),
		  !habit->copies);
	zero_copy_unmap();
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE,
			       map_file(zero_copy_create_file(), PAGE, MAP_SHARED), PAGE));
	zero_copy_unmap();
	fixture_close();
}

static void tmpfs_body(void)
{
	tmpfs_mount();
	for (size_t m = 0; m < sizeof(mappings) / sizeof(*mappings); m++)
		for (size_t h = 0; h < sizeof(habits) / sizeof(*habits); h++)
			tmpfs_expect(&mappings[m], &habits[h]);
}

TEST(tmpfs, "A file of a tmpfs is shared memory, wherever the tmpfs is mounted.")
{
	test_in_child(tmpfs_body);
}

TEST(zeros, "A private mapping of /dev/zero is anonymous memory.")
{
	open_gpu();
	mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE,
		      open("/dev/zero", O_RDWR | O_CLOEXEC), 0);
	mapped_size = PAGE;
	EXPECT(mapped != MAP_FAILED);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, mapped, PAGE));
	zero_copy_unmap();
	fixture_close();
}

TEST(huge_pages, "Huge pages are proved with huge pages.")
{
	const size_t size = 4 << 20;
	unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (memory == MAP_FAILED)
		test_skip("no huge pages");
	open_gpu();
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, memory + PAGE, 3 * PAGE));
	fixture_close();
	munmap(memory, size);
}

/* Creates a full disk, for the cache; the application's file lies on a different disk. */
static void fill_disk(void)
{
	if (unshare(CLONE_NEWNS) ||
	    system("exec >/dev/null 2>&1; mkdir -p /tmp/climport-full && mount --make-rprivate / "
		   "&& "
		   "dd if=/dev/zero of=/tmp/climport-full.img bs=1M count=4 && "
		   "mkfs.ext4 -q /tmp/climport-full.img && "
		   "mount -o loop /tmp/climport-full.img /tmp/climport-full; "
		   "rm -f /tmp/climport-full.img; mountpoint -q /tmp/climport-full"))
		test_skip("no file system can be mounted");
	EXPECT(system("dd if=/dev/zero of=/tmp/climport-full/fill 2>/dev/null") != 0);
}

static void full_disk_body(void)
{
	fill_disk();
	zero_copy_open(STUB_NUM_OPTIONS, 0);
	setenv("XDG_CACHE_HOME", "/tmp/climport-full", 1);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE,
			       map_file(zero_copy_create_file(), 4 * PAGE, MAP_SHARED), 4 * PAGE));
	zero_copy_unmap();
	fixture_close();
}

TEST(full_disk, "If the cache's disk is full, a program can import a file.")
{
	test_in_child(full_disk_body);
}

TEST_EACH(dmabuf, struct habit, habits,
	  "If a driver copies mappings of dma-bufs, imports of dma-bufs are refused.")
{
	zero_copy_open(STUB_COPYING_DMABUFS, row->copies);
	EXPECT_EQ(takes_dmabuf(), !row->copies);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	fixture_close();
}

TEST_EACH(proof_by_compiler, struct habit, habits,
	  "A CPU device without native kernels proves dma-bufs by compiled kernels.")
{
	fixture_reset();
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	stub_set(STUB_COPYING_DMABUFS, row->copies);
	fixture_open();
	EXPECT_EQ(takes_dmabuf(), !row->copies);
	fixture_close();
}

static const struct proof {
	const char *name;
	bool is_compiled;
} proofs[] = { { "native", false }, { "compiled", true } };

TEST_EACH(untouched, struct proof, proofs, "No proof changes the application's memory.")
{
	unsigned char *memory;

	fixture_reset();
	stub_set(STUB_NO_NATIVE_KERNEL, row->is_compiled);
	fixture_open();
	memory = pages_map(2);
	memset(memory, 0xa5, 2 * PAGE);
	cl.clReleaseMemObject(fixture_import_host(0, memory, 2 * PAGE));
	for (int i = 0; i < 2 * PAGE; i++)
		EXPECT_EQ(memory[i], 0xa5);
	fixture_close();
}

TEST(once_a_class, "A class of memory is proved once in a process.")
{
	unsigned long kernels;

	zero_copy_open(STUB_NUM_OPTIONS, 0);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(3), 3 * PAGE));
	kernels = stub_calls("clEnqueueNativeKernel");
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(3), 3 * PAGE));
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(2), 2 * PAGE));
	EXPECT_EQ(stub_calls("clEnqueueNativeKernel"), kernels);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(4), 4 * PAGE));
	EXPECT(stub_calls("clEnqueueNativeKernel") > kernels);
	fixture_close();
}

TEST(gigabyte, "The proof of a gigabyte of memory touches only the memory's ends.")
{
	const size_t size = (size_t)1 << 30;
	unsigned char *memory;

	zero_copy_open(STUB_NUM_OPTIONS, 0);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		test_skip("no address space");
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, memory, size));
	munmap(memory, size);
	fixture_close();
}

TEST(images_read_only,
     "If a driver copies images that are only read, such images on imports are refused.")
{
	cl_mem mem, image;
	cl_int err = 1;

	zero_copy_open(STUB_COPYING_IMAGES_READ_ONLY, 1);
	mem = fixture_import_host(CL_MEM_READ_WRITE, pages_map(1), PAGE);
	EXPECT(!fixture_try_image(CL_MEM_READ_ONLY, mem, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "CL_MEM_READ_ONLY"));
	image = fixture_try_image(CL_MEM_READ_WRITE, mem, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

/* Whether the layer makes an image of four columns on an import at @offset of a page. */
static bool makes_image(size_t offset, size_t rows, cl_channel_type type)
{
	const cl_image_format format = { CL_RGBA, type };
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = 4,
		.image_height = rows,
		.image_row_pitch = 64,
	};
	cl_image_desc with_parent = desc;
	cl_mem mem = fixture_import_host(CL_MEM_READ_WRITE, pages_map(2) + offset, PAGE), image;
	cl_int err;

	with_parent.mem_object = mem;
	image = cl.clCreateImage(fix.context, 0, &format, &with_parent, NULL, &err);
	EXPECT_EQ(err, image ? CL_SUCCESS : CL_INVALID_OPERATION);
	if (image)
		cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(mem);
	return image;
}

TEST(high_images, "If a driver copies high images, such images on imports are refused.")
{
	zero_copy_open(STUB_COPYING_IMAGES_ABOVE, 24);
	EXPECT(makes_image(0, 16, CL_UNSIGNED_INT8));
	EXPECT(!makes_image(0, 25, CL_UNSIGNED_INT8));
	EXPECT(makes_image(0, 24, CL_UNSIGNED_INT8));
	EXPECT(!makes_image(0, 32, CL_UNSIGNED_INT8));
	EXPECT(makes_image(0, 1, CL_UNSIGNED_INT8));
	fixture_close();
}

TEST(unaligned_images,
     "If a driver copies images that begin within a page, such images on imports are refused.")
{
	zero_copy_open(STUB_COPYING_IMAGES_ALIGN, PAGE);
	EXPECT(makes_image(0, 4, CL_UNSIGNED_INT8));
	EXPECT(!makes_image(64, 4, CL_UNSIGNED_INT8));
	fixture_close();
}

TEST(image_formats, "If a driver copies images of a format, such images on imports are refused.")
{
	zero_copy_open(STUB_COPYING_FLOATS, 1);
	EXPECT(makes_image(0, 4, CL_UNSIGNED_INT8));
	EXPECT(makes_image(0, 4, CL_UNORM_INT8));
	EXPECT(makes_image(0, 4, CL_UNSIGNED_INT32));
	EXPECT(!makes_image(0, 4, CL_FLOAT));
	fixture_close();
}

TEST(once_an_image, "A class of images is proved once in a process.")
{
	unsigned long kernels;

	zero_copy_open(STUB_NUM_OPTIONS, 0);
	EXPECT(makes_image(0, 16, CL_UNSIGNED_INT8));
	kernels = stub_calls("clEnqueueNDRangeKernel");
	EXPECT(makes_image(0, 16, CL_UNSIGNED_INT8));
	EXPECT_EQ(stub_calls("clEnqueueNDRangeKernel"), kernels);
	fixture_close();
}

static unsigned long kernels_of_an_import(void)
{
	unsigned long before;

	fixture_open();
	before = stub_calls("clEnqueueNativeKernel");
	EXPECT(zero_copy_takes(CL_MEM_READ_ONLY, pages_map(3), 3 * PAGE));
	before = stub_calls("clEnqueueNativeKernel") - before;
	fixture_close();
	return before;
}

TEST(kept, "A proof for a class of imports is kept for other processes.")
{
	fixture_reset();
	fixture_create_cache();
	EXPECT(kernels_of_an_import() > 0);
	EXPECT_EQ(kernels_of_an_import(), 0);
	fixture_remove_cache();
}

/*
 * Runs @run in a child.  The driver's threads exist in the parent only, so the child's commands
 * never end.
 */
static int zero_copy_run_child(int (*run)(void))
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		alarm(60);
		stub_set(STUB_HANG, 1);
		fix.notices = 0;
		_exit(run());
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_refused_as_child(unsigned long calls)
{
	if (fix.notices == 1 && strstr(fix.notice, "child of fork()") &&
	    stub_calls("clCreateContext") == calls)
		return true;
	printf("# %u messages: %s\n", fix.notices, fix.notice);
	return false;
}

static unsigned char *child_memory;
static cl_mem parents;

/* The parent has proved the import's class. */
static int import_proved(void)
{
	cl_int err = 1;

	return !fix.import(fix.context, 0, NULL, child_memory, PAGE, &err) || err;
}

static int import_unproved(void)
{
	const unsigned long calls = stub_calls("clCreateContext");
	cl_int err = 1;

	fix.import(fix.context, 0, NULL, child_memory + 4, 100, &err);
	return err != CL_INVALID_OPERATION || !is_refused_as_child(calls);
}

static int image_unproved(void)
{
	const cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = 4,
				     .image_height = 4,
				     .mem_object = parents };
	const unsigned long calls = stub_calls("clCreateContext");
	cl_int err = 1;

	cl.clCreateImage(fix.context, 0, &format, &desc, NULL, &err);
	return err != CL_INVALID_OPERATION || !is_refused_as_child(calls);
}

TEST(child,
     "In a child of the process that made a context, imports of unproved classes are refused at "
     "once.")
{
	zero_copy_open(STUB_NUM_OPTIONS, 0);
	child_memory = pages_map(2);
	/* no class is proved yet, nor the device */
	EXPECT_EQ(zero_copy_run_child(import_unproved), 0);
	parents = fixture_import_host(0, child_memory, PAGE);
	EXPECT_EQ(zero_copy_run_child(import_proved), 0);
	EXPECT_EQ(zero_copy_run_child(import_unproved), 0);
	EXPECT_EQ(zero_copy_run_child(image_unproved), 0);
	cl.clReleaseMemObject(
		fixture_import_host(0, child_memory + 4096, 100)); /* the parent can still prove */
	cl.clReleaseMemObject(parents);
	fixture_close();
}
