/* SPDX-License-Identifier: Apache-2.0 */
/* What all functions of libclimport share: versions, sizes of structs, flags, errors' sentences. */
#include "export_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#define FUTURE 64 /* bytes that a newer header's struct may have more */

LIB_TEST(version, "climport_version() is the version of the header.")
{
	EXPECT_EQ(climport_version(), CLIMPORT_VERSION);
	EXPECT_EQ(CL_VERSION_MAJOR(climport_version()), CLIMPORT_VERSION_MAJOR);
	EXPECT_EQ(CL_VERSION_MINOR(climport_version()), CLIMPORT_VERSION_MINOR);
	EXPECT_EQ(CL_VERSION_PATCH(climport_version()), CLIMPORT_VERSION_PATCH);
}

/* Functions that fill a struct. */
static int fill_dmabuf(const void *address, void *out, size_t out_size)
{
	return climport_export_dmabuf(address, PAGE, CLIMPORT_KEEP, out, out_size);
}

static int fill_registration(const void *address, void *out, size_t out_size)
{
	return climport_register(address, PAGE, 0, out, out_size);
}

static int fill_stats(const void *address, void *out, size_t out_size)
{
	(void)address;
	return climport_get_stats(out, out_size);
}

static int fill_current_gpu(const void *address, void *out, size_t out_size)
{
	void *context = fake_cuda_context_create(0);
	int ret;

	(void)address;
	fake_cuda_set_current(context);
	ret = climport_get_current_gpu(out, out_size);
	fake_cuda_set_current(NULL);
	fake_cuda_context_destroy(context);
	return ret;
}

static void give_back_dmabuf(void *out)
{
	close(((struct climport_dmabuf *)out)->fd);
}

static void give_back_registration(void *out)
{
	climport_unregister(out);
}

static void give_back_nothing(void *out)
{
	(void)out;
}

static const struct fill_row {
	const char *name;
	int (*fill)(const void *address, void *out, size_t out_size);
	void (*give_back)(void *out);
	size_t size;
} fill_rows[] = {
	{ "dmabuf", fill_dmabuf, give_back_dmabuf, sizeof(struct climport_dmabuf) },
	{ "registration", fill_registration, give_back_registration,
	  sizeof(struct climport_registration) },
	{ "stats", fill_stats, give_back_nothing, sizeof(struct climport_stats) },
	{ "gpu", fill_current_gpu, give_back_nothing, sizeof(struct climport_gpu) },
};

static bool all_bytes_are(const unsigned char *bytes, size_t size, unsigned char byte)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != byte)
			return false;
	return true;
}

/* Twice: the second call finds the registration of the first. */
TEST_EACH(newer_caller, struct fill_row, fill_rows,
	  "Members that a newer caller's struct has and the library does not know are 0.")
{
	_Alignas(16) unsigned char out[256];
	uintptr_t p;

	fixture_begin();
	p = fake_cuda_alloc(0, PAGE);
	for (int i = 0; i < 2; i++) {
		memset(out, 0xee, sizeof(out));
		EXPECT_EQ(row->fill(address_to_pointer(p), out, row->size + FUTURE), 0);
		EXPECT(all_bytes_are(out + row->size, FUTURE, 0));
		EXPECT(all_bytes_are(out + row->size + FUTURE, 8, 0xee));
		row->give_back(out);
	}
	climport_invalidate(address_to_pointer(p), PAGE);
	fake_cuda_free(p);
	fixture_end();
}

TEST_EACH(too_small, struct fill_row, fill_rows,
	  "A struct smaller than version 0.2.0's is -EINVAL, and is not written.")
{
	_Alignas(16) unsigned char out[256];
	int fds;
	uintptr_t p;

	fixture_begin();
	p = fake_cuda_alloc(0, PAGE);
	fds = process_count_descriptors();
	memset(out, 0xee, sizeof(out));
	EXPECT_EQ(row->fill(address_to_pointer(p), out, row->size - 1), -EINVAL);
	EXPECT(strstr(climport_last_error(), "out_size is "));
	EXPECT_EQ(row->fill(address_to_pointer(p), out, 0), -EINVAL);
	EXPECT(all_bytes_are(out, sizeof(out), 0xee));
	EXPECT_EQ(process_count_descriptors(), fds);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	fake_cuda_free(p);
	fixture_end();
}

LIB_TEST(high_flags, "Unknown flags are -EINVAL in the high half, too.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);
	struct climport_registration r = { .fd = -7 };
	struct climport_dmabuf d = untouched;

	EXPECT_EQ(climport_export_dmabuf(address_to_pointer(p), PAGE, UINT64_C(1) << 32, &d,
					 sizeof(d)),
		  -EINVAL);
	EXPECT(is_untouched(&d));
	EXPECT(strstr(climport_last_error(), "unknown flags 0x100000000"));
	EXPECT_EQ(climport_register(address_to_pointer(p), PAGE, UINT64_C(1) << 63, &r, sizeof(r)),
		  -EINVAL);
	EXPECT_EQ(climport_register(address_to_pointer(p), PAGE, CLIMPORT_KEEP, &r, sizeof(r)),
		  -EINVAL);
	EXPECT_EQ(r.fd, -7);
	fake_cuda_free(p);
}

TEST_EACH(whole, struct flags_row, flag_rows,
	  "An export says the size of the whole dma-buf, which may be larger than the range.")
{
	struct climport_dmabuf d;
	uintptr_t p;

	fixture_begin();
	p = fake_cuda_alloc(0, 4 * PAGE);
	for (int i = 0; i < 2; i++) {
		d = climport_export(p + PAGE, 100, (unsigned int)row->flags);
		EXPECT_EQ(d.size, 100);
		EXPECT_EQ(d.whole, (size_t)lseek(d.fd, 0, SEEK_END));
		EXPECT(d.offset + d.size <= d.whole);
		close(d.fd);
	}
	climport_invalidate(address_to_pointer(p), 4 * PAGE);
	fake_cuda_free(p);
	fixture_end();
}

static void fail_with_flags(void)
{
	struct climport_dmabuf d;

	EXPECT_EQ(climport_export_dmabuf(NULL, PAGE, 1 << 20, &d, sizeof(d)), -EINVAL);
}

/* Each function that can fail, with an error that is found before any driver is asked. */
static int fail_export(void)
{
	struct climport_dmabuf d;

	return climport_export_dmabuf(NULL, 0, 0, &d, sizeof(d));
}

static int fail_register(void)
{
	struct climport_registration r;

	return climport_register(NULL, 0, 0, &r, sizeof(r));
}

static int fail_keep_limit(void)
{
	return climport_set_limits(9, 0, UINT64_MAX);
}

static int fail_alloc(void)
{
	void *p;

	return climport_alloc(CLIMPORT_HOST, 1, 3, NULL, &p);
}

static int fail_stats(void)
{
	struct climport_stats s;

	return climport_get_stats(&s, 1);
}

static int fail_import(void)
{
	cl_int err = 0;
	char memory;

	EXPECT(!clImportMemoryARM(NULL, 0, NULL, &memory, 1, &err));
	return err;
}

static int fail_create_buffer(void)
{
	struct climport_dmabuf d = { .fd = -1 };
	cl_int err = 0;

	EXPECT(!climport_create_buffer(NULL, 0, NULL, &d, &err));
	return err;
}

static const struct fail_row {
	const char *name;
	int (*fail)(void);
	const char *sentence; /* a part; NULL: any */
} fail_rows[] = {
	{ "export", fail_export, "the size of the memory at 0 is 0" },
	{ "register", fail_register, "the size of the memory at 0 is 0" },
	{ "keep_limit", fail_keep_limit,
	  "the kind 9 is neither CLIMPORT_HOST nor CLIMPORT_DEVICE" },
	{ "alloc", fail_alloc, "alignment 3 is no power of two" },
	{ "stats", fail_stats, "out_size is 1, less than " },
	{ "import", fail_import, NULL },
	{ "create_buffer", fail_create_buffer, "dmabuf->size 0 at offset 0 is empty or overflows" },
};

TEST_EACH(sentence, struct fail_row, fail_rows,
	  "climport_last_error() has the sentence of the function's error.")
{
	fixture_begin();
	fail_with_flags();
	EXPECT(row->fail() < 0);
	EXPECT(*climport_last_error());
	EXPECT(!strstr(climport_last_error(), "unknown flags"));
	if (row->sentence && !strstr(climport_last_error(), row->sentence))
		printf("# %s\n", climport_last_error());
	if (row->sentence)
		EXPECT(strstr(climport_last_error(), row->sentence));
	fixture_end();
}

/* The process's first use of the variable counts. */
static void run_logged(void *arg)
{
	(void)arg;
	setenv("CLIMPORT_LOG", "error", 1);
	if (freopen("/dev/null", "w", stdout))
		execl("/proc/self/exe", "logged", "logged", (char *)NULL);
	_exit(126);
}

static void log_and_print(void)
{
	fail_export();
	fprintf(stderr, "climport: %s\n", climport_last_error());
}

LIB_TEST(logged, "climport_last_error() is the sentence that CLIMPORT_LOG=error prints.")
{
	char text[1024], *second;

	if (getenv("CLIMPORT_LOG")) {
		log_and_print();
		return;
	}
	EXPECT_EQ(fixture_run_child(run_logged, NULL, text, sizeof(text)), 0);
	second = strstr(text, "climport: the size of the memory at 0 is 0");
	EXPECT(second);
	second = strstr(second + 1, "climport: the size of the memory at 0 is 0");
	EXPECT(second);
	EXPECT(!strcmp(strchr(second, '\n'), "\n"));
}

LIB_TEST(success_keeps_sentence, "A call that succeeds leaves climport_last_error() alone.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);
	char before[512];
	void *memory;

	fail_with_flags();
	snprintf(before, sizeof(before), "%s", climport_last_error());
	close(climport_export(p, PAGE, 0).fd);
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 1, 0, NULL, &memory), 0);
	climport_free(memory);
	fixture_read_stats();
	EXPECT(!strcmp(climport_last_error(), before));
	fake_cuda_free(p);
}

LIB_TEST(driver_sentence, "climport_last_error() has the sentence of a driver's error.")
{
	void *memory;

	fail_with_flags();
	fake_cuda_fail("cuMemCreate", 1, 2); /* CUDA_ERROR_OUT_OF_MEMORY */
	EXPECT_EQ(climport_alloc(CLIMPORT_DEVICE, 1, 0, uuid[0], &memory), -ENOMEM);
	EXPECT(!strstr(climport_last_error(), "unknown flags"));
	EXPECT(strstr(climport_last_error(), "memory"));
}

static void *other_thread(void *arg)
{
	(void)arg;
	EXPECT(!strcmp(climport_last_error(), ""));
	fail_alloc();
	return NULL;
}

LIB_TEST(threads,
	 "climport_last_error() is the thread's own, and empty in a thread without errors.")
{
	pthread_t thread;

	fail_with_flags();
	EXPECT(!pthread_create(&thread, NULL, other_thread, NULL));
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(strstr(climport_last_error(), "unknown flags"));
}
