/* SPDX-License-Identifier: Apache-2.0 */
/* Regions become opaque descriptors (import/opaque_fd/opaque.c), on fakes of CUDA and RM. */
#include "harness.h"
#include "process.h"

#include "import/alloc/memory.h"
#include "import/export/export.h"
#include "import/opaque_fd/opaque_cache.h"
#include "import/opaque_fd/opaque.h"
#include "util/log.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fake_rm.h>
#include <opaque.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define G FAKE_CUDA_GRANULARITY

static unsigned char uuid[2][IMPORT_UUID_SIZE];
static struct fake_cuda_held held_before;
static int fds_before, memories_before;

static void opaque_descriptor_put(struct opaque *opaque, const struct import_opaque *out)
{
	close(out->fd);
	opaque->put(opaque);
}

static void opaque_descriptor_begin(void)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct import_region r = { .addr = p, .size = PAGE, .fd = -1 };
	struct import_opaque out;
	struct opaque *o;

	fake_cuda_reset(2);
	fake_cuda_set_current(NULL);
	fake_rm_reset(2);
	for (int i = 0; i < 2; i++) {
		fake_cuda_uuid(i, uuid[i]);
		memcpy(fake_rm.gpu[i].uuid, uuid[i], sizeof(uuid[i]));
	}
	/* The first use makes the objects that live as long as the process. */
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(import_opaque(&r, uuid[i], &o, &out), 0);
		opaque_descriptor_put(o, &out);
	}
	munmap(p, PAGE);
	fake_cuda_reset(2);
	held_before = fake_cuda_held();
	fds_before = process_count_descriptors();
	memories_before = fake_rm_held().memories;
}

static void opaque_descriptor_end(void)
{
	struct cache_stats s;

	opaque_stats(&s);
	EXPECT_EQ(s.entries, 0);
	EXPECT_EQ(s.bytes_pinned, 0);
	EXPECT_EQ(fake_rm_held().memories, memories_before);
	EXPECT(fake_cuda_holds(&held_before));
	EXPECT_EQ(process_count_descriptors(), fds_before);
}

#define OPAQUE_TEST(id, sentence)          \
	static void in_##id(void);         \
	TEST(id, sentence)                 \
	{                                  \
		opaque_descriptor_begin(); \
		in_##id();                 \
		opaque_descriptor_end();   \
	}                                  \
	static void in_##id(void)

static struct import_region region_at(uintptr_t address, size_t size)
{
	return (struct import_region){ .addr = (void *)address, .size = size, .fd = -1 };
}

/* As import/kinds/dmabuf.c does if the CPU cannot map the dma-buf. */
static struct import_region region_of_descriptor(int fd, size_t size)
{
	struct import_region region = { .size = size, .fd = fd };

	EXPECT_EQ(descriptor_identify(fd, &region.id), 0);
	return region;
}

static int opaque_descriptor_get_error(const struct import_region *region, const unsigned char *of)
{
	struct import_opaque out = { .fd = -7 };
	struct opaque *o = NULL;
	int fds = process_count_descriptors(), ret = import_opaque(region, of, &o, &out);

	EXPECT(!o);
	EXPECT_EQ(out.fd, -7);
	EXPECT_EQ(process_count_descriptors(), fds);
	return ret;
}

static struct opaque *opaque_descriptor_get(const struct import_region *region,
					    const unsigned char *of, struct import_opaque *out)
{
	struct opaque *o = NULL;

	EXPECT_EQ(import_opaque(region, of, &o, out), 0);
	return o;
}

static uintptr_t segment_create(int device)
{
	const struct fake_cuda_segment s = { device, G, 1 };

	return fake_cuda_vmm(&s, 1);
}

static int opaque_descriptor_export(uintptr_t address, size_t size)
{
	struct export_range e;

	EXPECT_EQ(export_dmabuf(address, size, 0, &e), 0);
	return e.fd;
}

OPAQUE_TEST(
	origin,
	"If a dma-buf was exported from the process's VMM memory, the original memory is imported.")
{
	uintptr_t p = segment_create(0);
	int fd = opaque_descriptor_export(p + 3 * PAGE, PAGE);
	struct import_region r = region_of_descriptor(fd, PAGE);
	struct import_opaque out;
	struct fake_opaque seen;
	struct opaque *o = opaque_descriptor_get(&r, uuid[0], &out);

	EXPECT_EQ(out.offset, 3 * PAGE);
	EXPECT_EQ(out.size, G);
	EXPECT_EQ(out.exporter, OPAQUE_BY_CUDA);
	EXPECT(fake_opaque_read(out.fd, &seen));
	EXPECT(seen.memory == fake_cuda_memory(p));
	opaque_descriptor_put(o, &out);
	EXPECT_EQ(opaque_descriptor_get_error(&r, uuid[1]), -EXDEV);
	close(fd);
	fake_cuda_vmm_free(p);
}

OPAQUE_TEST(freed, "If the memory was freed since the export, the import is -ENODEV.")
{
	uintptr_t p = segment_create(0);
	int fd = opaque_descriptor_export(p, PAGE);
	struct import_region r = region_of_descriptor(fd, PAGE);

	fake_cuda_vmm_free(p);
	EXPECT_EQ(opaque_descriptor_get_error(&r, uuid[0]), -ENODEV);
	close(fd);
}

static void segment_replace(void *address)
{
	fake_cuda_vmm_replace((uintptr_t)address);
}

static const struct moment {
	const char *name;
	const char *function;
	int nth;
} moments[] = {
	{ "before_identification", "cuPointerGetAttributes", 1 },
	{ "after_identification", "cuMemRetainAllocationHandle", 1 },
	{ "before_the_check", "cuMemExportToShareableHandle", 1 },
};

TEST_EACH(freed_meanwhile, struct moment, moments,
	  "If the memory is freed and the address reused during the import, the error is -ENODEV.")
{
	struct import_region r;
	uintptr_t p;
	int fd;

	opaque_descriptor_begin();
	p = segment_create(0);
	fd = opaque_descriptor_export(p, PAGE);
	r = region_of_descriptor(fd, PAGE);
	fake_cuda_at(row->function, row->nth, segment_replace, (void *)p);
	EXPECT_EQ(opaque_descriptor_get_error(&r, uuid[0]), -ENODEV);
	close(fd);
	fake_cuda_vmm_free(p);
	opaque_descriptor_end();
}

OPAQUE_TEST(ordinary, "Memory of cuMemAlloc() has no opaque descriptor: -EOPNOTSUPP.")
{
	uintptr_t p = fake_cuda_alloc(0, 1000);
	int fd = opaque_descriptor_export(p, 1000);
	struct import_region r = region_of_descriptor(fd, PAGE), direct = region_at(p, 1000);

	EXPECT(p % PAGE);
	EXPECT_EQ(opaque_descriptor_get_error(&direct, uuid[0]), -EOPNOTSUPP);
	EXPECT(opaque_descriptor_get_error(&r, uuid[0]) < 0);
	EXPECT(!strstr(log_last(), "was freed"));
	close(fd);
	fake_cuda_free(p);
}

OPAQUE_TEST(managed, "Managed memory is -EOPNOTSUPP, without a call of RM.")
{
	uintptr_t p = fake_cuda_managed(0, PAGE);
	struct import_region r = region_at(p, PAGE);
	unsigned int calls = fake_rm.calls;

	EXPECT_EQ(opaque_descriptor_get_error(&r, uuid[0]), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "managed"));
	EXPECT_EQ(fake_rm.calls, calls);
	fake_cuda_free(p);
}

OPAQUE_TEST(pages, "RM imports pages of the host, as whole pages and anew for each import.")
{
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct import_region r = region_at((uintptr_t)p + 100, PAGE);
	unsigned int pins = fake_rm.pins_made;
	struct import_opaque out, again;
	struct opaque *a = opaque_descriptor_get(&r, uuid[0], &out),
		      *b = opaque_descriptor_get(&r, uuid[0], &again);

	EXPECT_EQ(out.offset, 100);
	EXPECT_EQ(out.size, 2 * PAGE);
	EXPECT_EQ(out.exporter, OPAQUE_BY_RM);
	EXPECT(out.fd != again.fd);
	EXPECT_EQ(fake_rm.pins_made - pins, 2);
	opaque_descriptor_put(a, &out);
	opaque_descriptor_put(b, &again);
	munmap(p, 3 * PAGE);
}

OPAQUE_TEST(parts, "CUDA makes a descriptor for each import of a part of an allocation.")
{
	uintptr_t p = segment_create(0);
	struct import_region a = region_at(p, PAGE), b = region_at(p + G - PAGE, PAGE);
	struct import_opaque first, second;
	struct opaque *o = opaque_descriptor_get(&a, uuid[0], &first),
		      *q = opaque_descriptor_get(&b, uuid[0], &second);

	EXPECT(first.fd != second.fd);
	EXPECT_EQ(second.offset, G - PAGE);
	EXPECT_EQ(fake_cuda_calls("cuMemExportToShareableHandle"), 2);
	opaque_descriptor_put(o, &first);
	opaque_descriptor_put(q, &second);
	fake_cuda_vmm_free(p);
}

OPAQUE_TEST(registered,
	    "Imports of climport_alloc()'s memory have one name and no descriptor until a driver "
	    "asks; the descriptor is of all of the memory.")
{
	struct import_opaque first, second;
	struct import_region r;
	struct fake_opaque seen;
	struct opaque *o, *q;
	uintptr_t p;

	EXPECT_EQ(memory_alloc(MEMORY_DEVICE, G, 0, uuid[0], &p), 0);
	r = region_at(p + PAGE, PAGE);
	o = opaque_descriptor_get(&r, uuid[0], &first);
	q = opaque_descriptor_get(&r, uuid[0], &second);
	EXPECT(first.kept);
	EXPECT_EQ(second.kept, first.kept);
	EXPECT_EQ(first.fd, -1);
	EXPECT_EQ(import_opaque_open(o, uuid[0], true, &first), 0);
	EXPECT(fake_opaque_read(first.fd, &seen));
	EXPECT(seen.memory == fake_cuda_memory(p));
	EXPECT_EQ(import_opaque_open(q, uuid[1], true, &second), -EXDEV);
	opaque_descriptor_put(o, &first);
	q->put(q);
	memory_free(p);
}

OPAQUE_TEST(registered_freed,
	    "If registered memory is freed before a driver asks for the descriptor, the error is "
	    "-ENODEV.")
{
	struct import_opaque out;
	struct import_region r;
	struct opaque *o;
	uintptr_t p;

	EXPECT_EQ(memory_alloc(MEMORY_DEVICE, G, 0, uuid[0], &p), 0);
	r = region_at(p, PAGE);
	o = opaque_descriptor_get(&r, uuid[0], &out);
	fake_cuda_vmm_replace(p);
	EXPECT_EQ(import_opaque_open(o, uuid[0], true, &out), -ENODEV);
	EXPECT_EQ(out.fd, -1);
	o->put(o);
	memory_free(p);
}

OPAQUE_TEST(every_failure, "If any call of CUDA fails, the import fails and leaves nothing.")
{
	uintptr_t p = segment_create(0);
	int fd = opaque_descriptor_export(p, PAGE);
	struct import_region r = region_of_descriptor(fd, PAGE);

	for (int n = 1, failed = 1; failed; n++) {
		struct import_opaque out;
		struct opaque *o = NULL;
		int ret;

		fake_cuda_fail(NULL, n, 999);
		ret = import_opaque(&r, uuid[0], &o, &out);
		failed = fake_cuda_has_failed();
		fake_cuda_fail(NULL, 0, 0);
		EXPECT(!ret == !!o);
		if (!ret)
			opaque_descriptor_put(o, &out);
	}
	close(fd);
	fake_cuda_vmm_free(p);
}

enum { DEVICES = 24 };

static void *one_device(void *arg)
{
	unsigned char id[IMPORT_UUID_SIZE];
	struct import_region r = region_at(*(uintptr_t *)arg, PAGE);
	struct import_opaque out;
	struct opaque *o;

	/* Memory of the host is for every device. */
	for (int i = 0; i < DEVICES; i++) {
		memset(id, i + 1, sizeof(id));
		EXPECT_EQ(import_opaque(&r, id, &o, &out), 0);
		opaque_descriptor_put(o, &out);
	}
	return NULL;
}

OPAQUE_TEST(many_devices, "Eight threads can import memory for two dozen devices at once.")
{
	uintptr_t p = segment_create(FAKE_CUDA_HOST_NUMA);
	pthread_t thread[8];

	for (int i = 0; i < 8; i++)
		EXPECT(!pthread_create(&thread[i], NULL, one_device, &p));
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	fake_cuda_vmm_free(p);
}
