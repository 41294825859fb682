/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images on imports, by drivers that do not survive such images.  A probe process finds out, and the
 * program lives.
 */
#include "fake_dmabuf.h"
#include "probe.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define ORIGIN 128 /* bytes: the stub's CL_DEVICE_MEM_BASE_ADDR_ALIGN */

/* Of STUB_IMAGES_END_OF. */
#define OF_MEMORY "1"
#define OF_BUFFER "2"
#define OF_PART "4"
#define OF_BOTH "6"

/* The ends of the programs. */
enum { MADE, REFUSED, UNTESTED, NO_SENTENCE, NO_IMPORT, OTHER_ERROR };

static _Thread_local char notice[512];

static void CL_CALLBACK image_note(const char *message, const void *data, size_t size, void *user)
{
	(void)data, (void)size, (void)user;
	snprintf(notice, sizeof(notice), "%s", message);
}

typedef __typeof__(&clImportMemoryARM) import_fn;

static cl_mem image_import_of(cl_context context, const cl_import_properties_arm *properties,
			      void *memory)
{
	import_fn import = (import_fn)clGetExtensionFunctionAddressForPlatform(probe_get_platform(),
									       "clImportMemoryARM");
	cl_int err = 1;
	cl_mem mem = NULL;

	if (import)
		mem = import(context, CL_MEM_READ_WRITE, properties, memory, 2 * PAGE, &err);
	return err ? NULL : mem;
}

static cl_mem image_import(cl_context context)
{
	return image_import_of(
		context, NULL,
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* Of a dma-buf. */
static cl_mem image_import_dmabuf(cl_context context)
{
	const cl_import_properties_arm properties[] = { CL_IMPORT_TYPE_ARM,
							CL_IMPORT_TYPE_DMA_BUF_ARM, 0 };
	int fd = fake_dmabuf_create("a", 2 * PAGE);

	return image_import_of(context, properties, &fd);
}

static cl_context image_context(void)
{
	cl_device_id device;

	probe_use_installed_layer();
	if (clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return NULL;
	return clCreateContext(NULL, 1, &device, image_note, NULL, NULL);
}

static int image_try(cl_context context, cl_mem parent, cl_mem_object_type type)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = type,
		.image_width = 16,
		.image_height = type == CL_MEM_OBJECT_IMAGE2D ? 4 : 0,
		.mem_object = parent,
	};
	const char *reason;
	cl_int err = 1;
	cl_mem image;

	*notice = '\0';
	image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err);
	if (image) {
		clReleaseMemObject(image);
		return err ? OTHER_ERROR : MADE;
	}
	printf("# error %d: %s\n", err, notice);
	fflush(stdout);
	reason = strstr(notice,
			"it is unknown which images of imports are zero copy on this device: ");
	if (err == CL_OUT_OF_RESOURCES && reason && strrchr(reason, ':')[2])
		return UNTESTED;
	if (err != CL_INVALID_OPERATION)
		return OTHER_ERROR;
	return strstr(notice, "crashed or hung") ? REFUSED : NO_SENTENCE;
}

/* A program's image on an import, or on a part of the import. */
static int image_program(cl_mem_object_type type, bool of_part)
{
	const cl_buffer_region region = { ORIGIN, PAGE };
	cl_context context = image_context();
	cl_mem mem = context ? image_import(context) : NULL, part = mem;
	int found;

	if (!mem)
		return NO_IMPORT;
	if (of_part)
		part = clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
	if (!part)
		return NO_IMPORT;
	found = image_try(context, part, type);
	if (of_part)
		clReleaseMemObject(part);
	clReleaseMemObject(mem);
	clReleaseContext(context);
	return found;
}

static int image_2d(void)
{
	return image_program(CL_MEM_OBJECT_IMAGE2D, false);
}

static int image_1d(void)
{
	return image_program(CL_MEM_OBJECT_IMAGE1D_BUFFER, false);
}

static int image_2d_of_part(void)
{
	return image_program(CL_MEM_OBJECT_IMAGE2D, true);
}

static int image_1d_of_part(void)
{
	return image_program(CL_MEM_OBJECT_IMAGE1D_BUFFER, true);
}

/* On a GPU that takes dma-bufs by cl_khr_external_memory. */
static int image_of_dmabuf(void)
{
	cl_context context;
	cl_mem mem;

	fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
	setenv("STUB_COPYING", "1", 1);
	setenv("STUB_GPU", "1", 1);
	setenv("STUB_NO_NATIVE_KERNEL", "1", 1);
	setenv("STUB_KHR_DMABUF", "2", 1);
	context = image_context();
	mem = context ? image_import_dmabuf(context) : NULL;
	return mem ? image_try(context, mem, CL_MEM_OBJECT_IMAGE2D) : NO_IMPORT;
}

static int image_2d_twice(void)
{
	return image_2d() + image_2d();
}

static int image_none(void)
{
	cl_context context = image_context();
	cl_mem mem = context ? image_import(context) : NULL;

	return mem && !clReleaseMemObject(mem) && !clReleaseContext(context) ? MADE : NO_IMPORT;
}

#define REAL_PROBE "exec " PROBE_PATH " \"$@\""

/*
 * A new cache, and a driver that makes images from buffers.  @script makes records with images, with "ran" before;
 * @record makes those without.
 */
static void image_open_with(const char *record, const char *script)
{
	char counting[1024];

	snprintf(counting, sizeof(counting),
		 "if test $# = 3; then %s; exit; fi; echo ran >> $XDG_CACHE_HOME/ran; %s", record,
		 script);
	probe_create_cache();
	probe_install_layer(counting);
	setenv("STUB_IMAGE2D_FROM_BUFFER", "1", 1);
	setenv("STUB_IMAGE1D_OF_PART", "1", 1);
	unsetenv("STUB_IMAGES_END");
	unsetenv("CLIMPORT_PROBE");
}

static void image_open(const char *script)
{
	image_open_with(REAL_PROBE, script);
}

static const struct end {
	const char *name, *value;
} ends[] = { { "aborts", "6" }, { "crashes", "11" } };

static const struct object {
	const char *name;
	int (*program)(void);
	const char *of; /* where the driver ends */
	const char *from_buffer;
} objects[] = {
	{ "image_2d", image_2d, OF_BUFFER, "1" },
	{ "image_2d_by_layer", image_2d, OF_MEMORY, "0" },
	{ "image_1d", image_1d, OF_BUFFER, "1" },
	{ "image_2d_of_part", image_2d_of_part, OF_BOTH, "1" },
	{ "image_1d_of_part", image_1d_of_part, OF_BOTH, "1" },
};

TEST_EACH_PAIR(
	survives, struct object, objects, struct end, ends,
	"If a driver crashes with an image on an import, the image is refused with a sentence.")
{
	image_open(REAL_PROBE);
	setenv("STUB_IMAGE2D_FROM_BUFFER", row->from_buffer, 1);
	setenv("STUB_IMAGES_END_OF", row->of, 1);
	setenv("STUB_IMAGES_END", column->value, 1);
	EXPECT_EQ(probe_run_program(row->program), REFUSED);
}

TEST(ended_by_others, "If others end the test of an image, the image is refused with this reason, "
		      "and the next process has images tested again.")
{
	image_open(REAL_PROBE);
	setenv("STUB_IMAGES_END_OF", OF_BUFFER, 1);
	setenv("STUB_IMAGES_END", "9", 1);
	EXPECT_EQ(probe_run_program(image_2d), UNTESTED);
	EXPECT_EQ(probe_run_program(image_2d), UNTESTED);
	EXPECT_EQ(probe_count_runs(), 2);
}

TEST(part_on_buffer, "If a driver crashes with an image on a sub-buffer alone, a hidden buffer "
		     "takes the sub-buffer's "
		     "place.")
{
	image_open(REAL_PROBE);
	setenv("STUB_IMAGES_END_OF", OF_PART, 1);
	setenv("STUB_IMAGES_END", "6", 1);
	EXPECT_EQ(probe_run_program(image_2d_of_part), MADE);
	EXPECT_EQ(probe_run_program(image_1d_of_part), MADE);
}

TEST(buffer_alone,
     "If a driver crashes with an image on a whole import alone, sub-buffers have images.")
{
	image_open(REAL_PROBE);
	setenv("STUB_IMAGES_END_OF", OF_BUFFER, 1);
	setenv("STUB_IMAGES_END", "6", 1);
	EXPECT_EQ(probe_run_program(image_2d_of_part), MADE);
	EXPECT_EQ(probe_run_program(image_1d_of_part), MADE);
	EXPECT_EQ(probe_run_program(image_2d), REFUSED);
	EXPECT_EQ(probe_count_runs(), 1);
}

/* A record of a device that takes dma-bufs: climport-probe has no fake of udmabuf. */
#define KHR_RECORD PROBE_PATH " \"$@\" && " EDIT_PATH " /dev/fd/3 dma_buf=khr"
static const char khr_images[] = KHR_RECORD " fatal=7";

TEST(dmabuf, "An image on a dma-buf that crashes the driver of a GPU is refused.")
{
	image_open_with(KHR_RECORD, khr_images);
	EXPECT_EQ(probe_run_program(image_of_dmabuf), REFUSED);
	EXPECT_EQ(probe_count_runs(), 1);
	image_open_with(KHR_RECORD, "exit 99");
	EXPECT_EQ(probe_run_program(image_of_dmabuf), UNTESTED);
}

TEST(refusal_kept, "A process is refused an image that has crashed the probe of another process.")
{
	image_open(REAL_PROBE);
	setenv("STUB_IMAGES_END_OF", OF_BUFFER, 1);
	setenv("STUB_IMAGES_END", "6", 1);
	EXPECT_EQ(probe_run_program(image_2d), REFUSED);
	EXPECT_EQ(probe_run_program(image_2d), REFUSED);
	EXPECT_EQ(probe_count_runs(), 1);
}

TEST(once, "Images are tested once by a probe, for all processes.")
{
	image_open(REAL_PROBE);
	EXPECT_EQ(probe_run_program(image_2d_twice), MADE);
	EXPECT_EQ(probe_count_runs(), 1);
	EXPECT_EQ(probe_run_program(image_2d_twice), MADE);
	EXPECT_EQ(probe_count_runs(), 1);
}

TEST(no_images, "A program that makes no images starts no probe for images.")
{
	image_open(REAL_PROBE);
	EXPECT_EQ(probe_run_program(image_none), MADE);
	EXPECT_EQ(probe_count_runs(), 0);
}

static const struct unable {
	const char *name, *script;
} unables[] = {
	{ "no_platform", "exit 99" },
	{ "killed", "kill -KILL $$" },
	{ "other_answer", "echo something >&3" },
};

TEST_EACH(no_answer, struct unable, unables,
	  "If a probe says nothing about images, no image is made.")
{
	image_open(row->script);
	EXPECT_EQ(probe_run_program(image_2d), UNTESTED);
	EXPECT_EQ(probe_count_runs(), 1);
}

TEST(no_probe, "With CLIMPORT_PROBE=off, images are made if a record with images is kept.")
{
	image_open(REAL_PROBE);
	EXPECT_EQ(probe_run_program(image_none), MADE); /* keeps the record */
	setenv("CLIMPORT_PROBE", "off", 1);
	EXPECT_EQ(probe_run_program(image_2d), UNTESTED);
	EXPECT_EQ(probe_run_program(image_1d), UNTESTED);
	EXPECT_EQ(probe_count_runs(), 0);
	unsetenv("CLIMPORT_PROBE");
	EXPECT_EQ(probe_run_program(image_2d), MADE);
	setenv("CLIMPORT_PROBE", "off", 1);
	EXPECT_EQ(probe_run_program(image_2d), MADE);
	EXPECT_EQ(probe_count_runs(), 1);
}

TEST(here, "With CLIMPORT_PROBE=here, the program tests images itself.")
{
	image_open(REAL_PROBE);
	setenv("CLIMPORT_PROBE", "here", 1);
	EXPECT_EQ(probe_run_program(image_2d), MADE);
	EXPECT_EQ(probe_count_runs(), 0);
}

static int image_1d_ten_times(void)
{
	cl_context context = image_context();
	cl_mem mem = context ? image_import(context) : NULL;
	int found = mem ? UNTESTED : NO_IMPORT;

	for (int i = 0; i < 10 && found == UNTESTED; i++)
		found = image_try(context, mem, CL_MEM_OBJECT_IMAGE1D_BUFFER);
	return found;
}

TEST_EACH(asked_once, struct unable, unables,
	  "A probe that says nothing about images is not started again for each image.")
{
	image_open(row->script);
	EXPECT_EQ(probe_run_program(image_1d_ten_times), UNTESTED);
	EXPECT_EQ(probe_count_runs(), 1);
}

#define IMAGE_THREADS 8

static struct {
	cl_context context;
	cl_mem mem;
	pthread_barrier_t begin;
} image_shared;

static void *image_try_in_thread(void *found)
{
	pthread_barrier_wait(&image_shared.begin);
	*(int *)found =
		image_try(image_shared.context, image_shared.mem, CL_MEM_OBJECT_IMAGE1D_BUFFER);
	return NULL;
}

/* The common end of threads that make their first image at once. */
static int image_1d_in_threads(void)
{
	pthread_t threads[IMAGE_THREADS];
	int found[IMAGE_THREADS];

	image_shared.context = image_context();
	image_shared.mem = image_shared.context ? image_import(image_shared.context) : NULL;
	pthread_barrier_init(&image_shared.begin, NULL, IMAGE_THREADS);
	for (int i = 0; i < IMAGE_THREADS; i++)
		if (pthread_create(&threads[i], NULL, image_try_in_thread, &found[i]))
			return OTHER_ERROR;
	for (int i = 0; i < IMAGE_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < IMAGE_THREADS; i++)
		if (found[i] != found[0])
			return OTHER_ERROR;
	return found[0];
}

TEST(threads, "Threads that make the first image at once wait for one probe.")
{
	image_open(REAL_PROBE);
	EXPECT_EQ(probe_run_program(image_1d_in_threads), MADE);
	EXPECT_EQ(probe_count_runs(), 1);
}

TEST_EACH(threads_unanswered, struct unable, unables,
	  "Threads that make the first image at once wait for one probe, also if the probe says "
	  "nothing about images.")
{
	image_open(row->script);
	EXPECT_EQ(probe_run_program(image_1d_in_threads), UNTESTED);
	EXPECT_EQ(probe_count_runs(), 1);
}

static const struct holder {
	const char *name, *script;
} holders[] = {
	/* time: longer than a program waits */
	{ "helper", "sleep 70 & kill -ABRT $$" },
};

TEST_EACH(ends, struct holder, holders,
	  "A program does not wait for the processes that a dead probe has left.")
{
	image_open(row->script);
	EXPECT_EQ(probe_run_program(image_2d), UNTESTED);
}
