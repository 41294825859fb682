/* SPDX-License-Identifier: Apache-2.0 */
/* climport_alloc() and climport_free(). */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define MB ((size_t)1 << 20)

static void *alloc_memory(unsigned int kind, size_t size, size_t alignment, const unsigned char *of)
{
	void *p = NULL;

	EXPECT_EQ(climport_alloc(kind, size, alignment, of, &p), 0);
	EXPECT_EQ((uintptr_t)p % (alignment ? alignment : 512), 0);
	return p;
}

static int alloc_memory_error(unsigned int kind, size_t size, size_t alignment,
			      const unsigned char *of)
{
	void *p = &p;
	int ret = climport_alloc(kind, size, alignment, of, &p);

	EXPECT(p == (void *)&p);
	return ret;
}

static const struct size_row {
	const char *name;
	size_t size;
} host_sizes[] = {
	{ "1", 1 },    { "512", 512 },	    { "4096", 4096 },
	{ "1mb", MB }, { "1mb_1", MB + 1 }, { "5mb", 5 * MB },
};

TEST_EACH(pages_of_host, struct size_row, host_sizes,
	  "Without a UUID the memory is the host's, without a call of CUDA.")
{
	char *p;

	fixture_begin();
	p = alloc_memory(CLIMPORT_HOST, row->size, 0, NULL);
	memset(p, 1, row->size);
	climport_free(p);
	EXPECT_EQ(fake_cuda_calls(NULL), 0);
	fixture_end();
}

LIB_TEST(host_of_device, "With a UUID the memory is VMM memory of the host, accessible to the CPU.")
{
	char *p = alloc_memory(CLIMPORT_HOST, 3 * MB, 0, uuid[1]);

	memset(p, 1, 3 * MB);
	EXPECT(fake_cuda_node((uintptr_t)p) >= 0);
	EXPECT_EQ(fake_cuda_held().mappings, 1);
	EXPECT_EQ(fixture_read_stats().bytes_allocated, 4 * MB);
	climport_free(p);
}

LIB_TEST(device_memory,
	 "Device memory belongs to the device with the UUID, and exports as a dma-buf.")
{
	char *p = alloc_memory(CLIMPORT_DEVICE, 1000, 0, uuid[1]), *q;
	struct climport_dmabuf d;
	unsigned char byte = 0;

	q = alloc_memory(CLIMPORT_DEVICE, 1000, 0, uuid[1]);
	*(unsigned char *)fake_cuda_memory((uintptr_t)q) = 17;
	EXPECT_EQ(climport_export_dmabuf(q, 1000, 0, &d, sizeof(d)), 0);
	EXPECT_EQ(pread(d.fd, &byte, 1, (off_t)d.offset), 1);
	EXPECT_EQ(byte, 17);
	close(d.fd);
	climport_free(p);
	climport_free(q);
}

LIB_TEST(registered, "climport_free() ends a registration by CLIMPORT_KEEP.")
{
	void *p = alloc_memory(CLIMPORT_DEVICE, MB, 0, uuid[0]);
	struct climport_dmabuf d;

	EXPECT_EQ(climport_export_dmabuf(p, MB, CLIMPORT_KEEP, &d, sizeof(d)), 0);
	close(d.fd);
	EXPECT(fixture_read_stats().bytes_idle);
	climport_free(p);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 0);
}

LIB_TEST(bad_requests, "An unknown kind, a size of 0 and a wrong alignment are -EINVAL.")
{
	EXPECT_EQ(alloc_memory_error(2, 1, 0, uuid[0]), -EINVAL);
	EXPECT_EQ(alloc_memory_error(CLIMPORT_HOST, 0, 0, NULL), -EINVAL);
	EXPECT_EQ(alloc_memory_error(CLIMPORT_DEVICE, 0, 0, uuid[0]), -EINVAL);
	EXPECT_EQ(alloc_memory_error(CLIMPORT_HOST, 1, 3, NULL), -EINVAL);
	EXPECT_EQ(alloc_memory_error(CLIMPORT_HOST, 1, 4 * MB, NULL), -EINVAL);
	EXPECT_EQ(alloc_memory_error(CLIMPORT_HOST, 1, SIZE_MAX, NULL), -EINVAL);
}

LIB_TEST(no_device, "An unknown UUID, and device memory without a UUID, are -ENODEV.")
{
	static const unsigned char unknown[CLIMPORT_UUID_SIZE];

	EXPECT_EQ(alloc_memory_error(CLIMPORT_DEVICE, 1, 0, NULL), -ENODEV);
	EXPECT_EQ(alloc_memory_error(CLIMPORT_DEVICE, 1, 0, unknown), -ENODEV);
	EXPECT_EQ(alloc_memory_error(CLIMPORT_HOST, 1, 0, unknown), -ENODEV);
	fake_cuda_fail("cuInit", 1, 999);
	EXPECT_EQ(alloc_memory_error(CLIMPORT_HOST, 1, 0, uuid[0]), -ENODEV);
}

LIB_TEST(no_vmm, "If the device has no virtual memory management, or not for host memory, the "
		 "error is -EOPNOTSUPP.")
{
	fake_cuda_fail("cuMemCreate", 1, 801); /* CUDA_ERROR_NOT_SUPPORTED */
	EXPECT_EQ(alloc_memory_error(CLIMPORT_HOST, 1, 0, uuid[0]), -EOPNOTSUPP);
	fake_cuda_set_attribute(0, 102, 0); /* ..._VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
	EXPECT_EQ(alloc_memory_error(CLIMPORT_DEVICE, 1, 0, uuid[0]), -EOPNOTSUPP);
}

static const struct size_row large_sizes[] = {
	{ "max", SIZE_MAX },
	{ "max_less_2mb", SIZE_MAX - G },
	{ "max_aligned", SIZE_MAX - G + 1 },
	{ "max_aligned_less_2mb", SIZE_MAX - 2 * G + 1 },
	{ "half", SIZE_MAX / 2 },
	{ "sixteenth", SIZE_MAX / 16 + 1 },
	{ "beyond_ram", (size_t)1 << (sizeof(size_t) > 4 ? 50 : 30) },
};

TEST_EACH(too_large, struct size_row, large_sizes, "A size beyond any memory is -ENOMEM.")
{
	fixture_begin();
	EXPECT_EQ(alloc_memory_error(CLIMPORT_HOST, row->size, 0, NULL), -ENOMEM);
	EXPECT_EQ(alloc_memory_error(CLIMPORT_HOST, row->size, 0, uuid[0]), -ENOMEM);
	EXPECT_EQ(alloc_memory_error(CLIMPORT_DEVICE, row->size, 2 * MB, uuid[0]), -ENOMEM);
	fixture_end();
}

enum { COUNT = 500 };

static struct {
	unsigned char *at;
	size_t size;
} part[COUNT];

static unsigned int alloc_random_below(unsigned int n)
{
	static unsigned int state = 1;

	state = state * 1664525 + 1013904223;
	return (state >> 8) % n;
}

LIB_TEST(slabs, "Allocations of any size and alignment do not overlap, also after frees.")
{
	for (int round = 0; round < 3; round++) {
		for (int i = round ? COUNT / 2 : 0; i < COUNT; i++) {
			size_t alignment = (size_t)1 << alloc_random_below(i % 50 ? 13 : 22);

			part[i].size = 1 + alloc_random_below(i % 20 ? 9000 : 1200000);
			part[i].at = alloc_memory(CLIMPORT_HOST, part[i].size, alignment,
						  i % 3 ? uuid[i % 2] : NULL);
			memset(part[i].at, i % 251, part[i].size);
		}
		for (int i = COUNT - 1; i >= (round < 2 ? COUNT / 2 : 0); i--) {
			EXPECT_EQ(part[i].at[0], i % 251);
			EXPECT(!memcmp(part[i].at, part[i].at + 1, part[i].size - 1));
			climport_free(part[i].at);
		}
	}
}

LIB_TEST(one_slab,
	 "Small allocations with the same device and kind share a slab with a single descriptor.")
{
	void *p[6];

	for (int i = 0; i < 4; i++)
		p[i] = alloc_memory(CLIMPORT_DEVICE, 300, 0, uuid[0]);
	EXPECT_EQ(fake_cuda_calls("cuMemExportToShareableHandle"), 1);
	EXPECT_EQ(fixture_read_stats().bytes_allocated, 2 * MB);
	p[4] = alloc_memory(CLIMPORT_DEVICE, 300, 0, uuid[1]);
	p[5] = alloc_memory(CLIMPORT_HOST, 300, 0, uuid[0]);
	EXPECT_EQ(fixture_read_stats().bytes_allocated, 6 * MB);
	for (int i = 0; i < 6; i++)
		climport_free(p[i]);
}

LIB_TEST(full_slab, "A slab has 4096 parts of 512 bytes, and the next part is in a new slab.")
{
	static void *p[4097];

	for (int i = 0; i < 4097; i++) {
		p[i] = alloc_memory(CLIMPORT_DEVICE, 512, 0, uuid[0]);
		EXPECT_EQ(fixture_read_stats().bytes_allocated, i < 4096 ? 2 * MB : 4 * MB);
	}
	for (int i = 0; i < 4097; i++)
		climport_free(p[i]);
}

static const struct kind_row {
	const char *name;
	unsigned int kind;
} kinds[] = {
	{ "host", CLIMPORT_HOST },
	{ "device", CLIMPORT_DEVICE },
};

TEST_EACH(every_failure, struct kind_row, kinds,
	  "If any call of CUDA fails, the allocation fails and leaves nothing.")
{
	fixture_begin();
	for (int n = 1, failed = 1; failed; n++) {
		void *p = NULL;
		int ret;

		fake_cuda_fail(NULL, n, 999);
		ret = climport_alloc(row->kind, 1000, 0, uuid[0], &p);
		failed = fake_cuda_has_failed();
		fake_cuda_fail(NULL, 0, 0);
		EXPECT(!ret == !!p);
		climport_free(p);
		EXPECT_EQ(fixture_read_stats().bytes_allocated, 0);
		EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
		EXPECT_EQ(fake_cuda_held().mappings, 0);
		EXPECT_EQ(fake_cuda_held().handles, 0);
	}
	fixture_end();
}

static void wrong_free(void *address)
{
	climport_free(address);
}

static void free_twice(void *address)
{
	climport_free(address);
	climport_free(address);
}

static void expect_abort(void (*run)(void *arg), void *address)
{
	char text[4096];
	int status = fixture_run_child(run, address, text, sizeof(text));

	EXPECT(WIFSIGNALED(status));
	EXPECT_EQ(WTERMSIG(status), SIGABRT);
	EXPECT(strstr(text, "is not allocated"));
}

LIB_TEST(wrong_free, "climport_free() aborts with a message for an address that is not allocated.")
{
	char *slab = alloc_memory(CLIMPORT_HOST, 1000, 0, NULL), local;
	char *large = alloc_memory(CLIMPORT_HOST, 5 * MB, 0, NULL);

	climport_free(NULL);
	expect_abort(wrong_free, &local);
	expect_abort(wrong_free, slab + 1);
	expect_abort(wrong_free, slab + 1024);
	expect_abort(wrong_free, large + 1);
	expect_abort(wrong_free, large + 2 * MB);
	expect_abort(free_twice, slab);
	expect_abort(free_twice, large);
	climport_free(slab);
	climport_free(large);
}

/* CUDA does not work in a child. */
static void use_in_child(void *memory)
{
	int calls;
	void *p;

	fake_cuda_uninitialize();
	if (fixture_read_stats().bytes_allocated)
		_exit(1);
	fake_cuda_fail("cuInit", 1, 3);
	if (climport_alloc(CLIMPORT_HOST, 1000, 0, uuid[0], &p) != -ENODEV)
		_exit(2);
	if (climport_alloc(CLIMPORT_HOST, 1000, 0, NULL, &p))
		_exit(3);
	memset(p, 1, 1000);
	climport_free(p);
	calls = fake_cuda_calls(NULL);
	climport_free(memory);
	if (fake_cuda_calls(NULL) != calls || fixture_read_stats().bytes_allocated)
		_exit(4);
}

LIB_TEST(forked, "A child does not have CUDA memory, and may free the address; host pages exist in "
		 "the child.")
{
	char text[1000];
	void *p = alloc_memory(CLIMPORT_HOST, 1000, 0, uuid[0]);

	EXPECT_EQ(fixture_run_child(use_in_child, p, text, sizeof(text)), 0);
	EXPECT_EQ(fake_cuda_held().mappings, 1);
	memset(p, 1, 1000);
	climport_free(p);
}

static atomic_bool stop;

static void *memory_churn(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop))
		climport_free(alloc_memory(CLIMPORT_HOST, 1000, 0, NULL));
	return NULL;
}

static void use_host(void *arg)
{
	void *p;

	(void)arg;
	if (climport_alloc(CLIMPORT_HOST, 1000, 0, NULL, &p))
		_exit(1);
	climport_free(p);
	(void)fixture_read_stats();
}

LIB_TEST(fork_among_threads, "A child of a process whose threads allocate can allocate.")
{
	char text[1000];
	pthread_t thread[2];

	climport_free(alloc_memory(CLIMPORT_HOST, 1000, 0, uuid[0])); /* creates the caches */
	atomic_store(&stop, false);
	for (int i = 0; i < 2; i++)
		EXPECT(!pthread_create(&thread[i], NULL, memory_churn, NULL));
	for (int i = 0; i < 50; i++)
		EXPECT_EQ(fixture_run_child(use_host, NULL, text, sizeof(text)), 0);
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

static void *memory_work(void *arg)
{
	unsigned int n = *(unsigned int *)arg;
	struct climport_dmabuf d;

	for (unsigned int i = 0; i < 60; i++) {
		size_t size = 100 + 700 * n + (i % 7 ? 0 : 2 * MB);
		void *p = alloc_memory(i % 2, size, 0, uuid[(n + i) % 2]);

		if (i % 2) {
			EXPECT_EQ(climport_export_dmabuf(p, size, n % 2 ? CLIMPORT_KEEP : 0, &d,
							 sizeof(d)),
				  0);
			close(d.fd);
		} else {
			memset(p, (int)n, size);
			EXPECT_EQ(((unsigned char *)p)[size - 1], n);
		}
		(void)fixture_read_stats();
		climport_free(p);
	}
	return NULL;
}

LIB_TEST(threads, "Eight threads allocate, export and free, and nothing is left.")
{
	unsigned int n[8];
	pthread_t thread[8];

	for (unsigned int i = 0; i < 8; i++) {
		n[i] = i;
		EXPECT(!pthread_create(&thread[i], NULL, memory_work, &n[i]));
	}
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
}
