/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports, allocations and opaque descriptors under a shortage.  The tests refuse each resource of
 * an operation in turn: memory, descriptors, and every call of CUDA and RM.
 */
#include "harness.h"
#include "process.h"

#include "import/alloc/device_pool.h"
#include "import/alloc/memory.h"
#include "import/export/export.h"
#include "import/export/registration.h"
#include "import/opaque_fd/opaque_cache.h"
#include "import/opaque_fd/opaque.h"
#include "util/log.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fake_rm.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define RM_NO_MEMORY 0x51

/* Counts the program's own allocations; linked with --wrap. */
static int allocations_left; /* 0: all succeed */
static bool was_refused;

static bool shortage_refuses(void)
{
	if (!allocations_left || --allocations_left)
		return false;
	was_refused = true;
	errno = ENOMEM;
	return true;
}

/* The linker wants visible wrappers, because a sanitizer's library refers to malloc(). */
#define WRAPPED __attribute__((visibility("default")))

void *__real_malloc(size_t size);
WRAPPED void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
WRAPPED void *__wrap_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
WRAPPED void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_malloc(size_t size)
{
	return shortage_refuses() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return shortage_refuses() ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return shortage_refuses() ? NULL : __real_aligned_alloc(align, size);
}

static unsigned char uuid[IMPORT_UUID_SIZE];
static uintptr_t gpu;
static void *pages;

/* The operations.  Each operation releases everything before the return. */

static int shortage_export(unsigned int options)
{
	struct export_range range;
	int ret = export_dmabuf(gpu, PAGE, options, &range);

	if (!ret)
		close(range.fd);
	export_invalidate(gpu, PAGE);
	return ret;
}

static int shortage_export_plain(void)
{
	return shortage_export(0);
}

static int shortage_export_kept(void)
{
	return shortage_export(EXPORT_KEEP);
}

static int shortage_allocate(enum memory_kind kind, const unsigned char *of)
{
	uintptr_t address;
	int ret = memory_alloc(kind, PAGE, 0, of, &address);

	if (!ret)
		memory_free(address);
	return ret;
}

static int allocate_pages(void)
{
	return shortage_allocate(MEMORY_HOST, NULL);
}

static int shortage_allocate_host(void)
{
	return shortage_allocate(MEMORY_HOST, uuid);
}

static int shortage_allocate_device(void)
{
	return shortage_allocate(MEMORY_DEVICE, uuid);
}

static int shortage_get_opaque(const struct import_region *region)
{
	struct import_opaque out;
	struct opaque *o;
	int ret = import_opaque(region, uuid, &o, &out);

	if (ret)
		return ret;
	if (out.fd < 0)
		ret = import_opaque_open(o, uuid, true, &out);
	if (!ret)
		close(out.fd);
	o->put(o);
	return ret;
}

static int opaque_of_pages(void)
{
	const struct import_region region = { .addr = pages, .size = PAGE, .fd = -1 };

	return shortage_get_opaque(&region);
}

/* Memory allocated before the test: the allocation is a different operation. */
static uintptr_t allocated;

static int opaque_of_allocated(void)
{
	const struct import_region region = { .addr = (void *)allocated, .size = PAGE, .fd = -1 };

	return shortage_get_opaque(&region);
}

/* The memory that is freed waits for an event, and the second allocation for the event. */
static int shortage_pool(enum device_pool_memory memory)
{
	struct pool *pool = NULL;
	void *address;
	int ret = device_pool_create(0, memory, &pool);

	for (int i = 0; i < 2 && !ret; i++) {
		ret = device_pool_alloc(pool, PAGE, STREAMS_BLOCKING, NULL, &address, 1);
		ret = ret > 0 ? 0 : ret;
		if (!ret)
			device_pool_free(pool, (uintptr_t)address, STREAMS_ALL, NULL);
	}
	if (pool)
		device_pool_destroy(pool);
	return ret;
}

static int shortage_pool_vmm(void)
{
	return shortage_pool(DEVICE_POOL_VMM);
}

static int shortage_pool_ipc(void)
{
	return shortage_pool(DEVICE_POOL_IPC);
}

static int shortage_pool_host(void)
{
	return shortage_pool(DEVICE_POOL_HOST);
}

static int shortage_register(void)
{
	struct registration registration;
	int ret = export_register((uintptr_t)pages, PAGE, &registration);

	if (!ret)
		export_unregister(&registration);
	return ret;
}

static const struct operation {
	const char *name;
	int (*run)(void);
} operations[] = {
	{ "export", shortage_export_plain },
	{ "kept_export", shortage_export_kept },
	{ "registration", shortage_register },
	{ "pages", allocate_pages },
	{ "cuda_host_memory", shortage_allocate_host },
	{ "device_memory", shortage_allocate_device },
	{ "opaque_descriptor_of_pages", opaque_of_pages },
	{ "opaque_descriptor_of_cuda_memory", opaque_of_allocated },
	{ "pool", shortage_pool_vmm },
	{ "pool_ipc", shortage_pool_ipc },
	{ "pool_of_host_memory", shortage_pool_host },
};

struct held {
	struct fake_cuda_held cuda;
	int memories, fds;
	size_t bytes;
	struct cache_stats exports, opaque;
};

static struct held shortage_read_held(void)
{
	struct held h = {
		.cuda = fake_cuda_held(),
		.memories = fake_rm_held().memories,
		.fds = process_count_descriptors(),
		.bytes = memory_bytes(),
	};

	export_stats(&h.exports);
	opaque_stats(&h.opaque);
	return h;
}

static void expect_same(const struct held *a, const struct held *b)
{
	EXPECT(fake_cuda_holds(&a->cuda));
	EXPECT_EQ(a->memories, b->memories);
	EXPECT_EQ(a->fds, b->fds);
	EXPECT_EQ(a->bytes, b->bytes);
	EXPECT_EQ(a->exports.bytes_pinned, b->exports.bytes_pinned);
	EXPECT_EQ(a->opaque.bytes_pinned, b->opaque.bytes_pinned);
	EXPECT_EQ(a->opaque.entries, b->opaque.entries);
}

static void shortage_test_begin(void)
{
	if (gpu)
		return;
	fake_cuda_reset(1);
	fake_cuda_uuid(0, uuid);
	fake_rm_reset(1);
	memcpy(fake_rm.gpu[0].uuid, uuid, sizeof(uuid));
	gpu = fake_cuda_alloc(0, PAGE);
	pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(pages != MAP_FAILED);
}

/* Runs the operation and refuses the @nth use of a resource; false if @run had fewer uses. */
typedef bool (*refuse_fn)(int (*run)(void), int nth, int *ret);

static void refuse_each(refuse_fn refuse, int (*run)(void), bool warm)
{
	struct held before = shortage_read_held(), after;
	bool refused = true;
	int ret;

	for (int n = 1; refused; n++) {
		refused = refuse(run, n, &ret);
		if (ret > 0 || (ret && !refused)) {
			printf("# refusal %d: %d\n", n, ret);
			EXPECT(!"an error without a reason");
		}
		if (!warm)
			continue;
		after = shortage_read_held();
		if (after.fds != before.fds)
			printf("# refusal %d: %d\n", n, ret);
		expect_same(&before, &after);
	}
	EXPECT_EQ(run(), 0);
}

/* The first round makes the objects that live as long as the process; the second finds leaks. */
static void refuse_all(refuse_fn refuse, const struct operation *operation)
{
	shortage_test_begin();
	if (!allocated)
		EXPECT_EQ(memory_alloc(MEMORY_HOST, PAGE, 0, uuid, &allocated), 0);
	for (int warm = 0; warm < 2; warm++)
		refuse_each(refuse, operation->run, warm);
}

static bool refuse_memory(int (*run)(void), int nth, int *ret)
{
	was_refused = false;
	allocations_left = nth;
	*ret = run();
	allocations_left = 0;
	EXPECT(!*ret || *ret == -ENOMEM);
	return was_refused;
}

TEST_EACH(memory, struct operation, operations,
	  "If any allocation fails, an operation is -ENOMEM and leaves nothing, and the next try "
	  "works.")
{
	refuse_all(refuse_memory, row);
}

static bool refuse_cuda(int (*run)(void), int nth, int *ret)
{
	fake_cuda_fail(NULL, nth, 2);
	*ret = run();
	fake_cuda_fail(NULL, 0, 0);
	return fake_cuda_has_failed() || *ret;
}

TEST_EACH(cuda, struct operation, operations,
	  "If any call of CUDA has no memory, an operation leaves nothing, and the next try works.")
{
	refuse_all(refuse_cuda, row);
}

static bool refuse_driver(int (*run)(void), int nth, int *ret)
{
	bool refused;

	fake_cuda_refuse(nth);
	*ret = run();
	refused = fake_cuda_has_refused();
	fake_cuda_refuse(0);
	return refused;
}

TEST_EACH(driver, struct operation, operations,
	  "If the system gives CUDA itself no memory, no mapping or no memfd, an operation leaves "
	  "nothing, and the next try works.")
{
	refuse_all(refuse_driver, row);
}

/* Calls that RM may refuse for want of memory: what is freed is freed. */
static const char *const rm_calls[] = {
	"open control", "version",  "client", "uuid", "cards",
	"open device",	"register", "device", "pin",  "export",
};

#define RM_CALLS (int)(sizeof(rm_calls) / sizeof(*rm_calls))

static bool refuse_rm(int (*run)(void), int nth, int *ret)
{
	if (nth <= RM_CALLS)
		fake_rm.fail_name = rm_calls[nth - 1];
	fake_rm.fail_status = RM_NO_MEMORY;
	fake_rm.fail_times = 1;
	fake_rm.matched = 0;
	fake_rm.fail_call = nth <= RM_CALLS;
	*ret = run();
	fake_rm.fail_call = 0;
	return nth <= RM_CALLS;
}

TEST_EACH(rm, struct operation, operations,
	  "If any call of RM has no memory, an operation leaves nothing, and the next try works.")
{
	refuse_all(refuse_rm, row);
}

/* Leaves the process @nth - 1 descriptors. */
static bool refuse_descriptors(int (*run)(void), int nth, int *ret)
{
	enum { LIMIT = 256 };
	struct rlimit before, limit = { LIMIT, 0 };
	int fds[LIMIT], count = 0;

	getrlimit(RLIMIT_NOFILE, &before);
	limit.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	while ((fds[count] = dup(0)) >= 0)
		count++;
	for (int i = 1; i < nth; i++)
		close(fds[--count]);
	*ret = run();
	while (count)
		close(fds[--count]);
	setrlimit(RLIMIT_NOFILE, &before);
	return *ret || nth < 4; /* some operations need no descriptor at first */
}

TEST_EACH(
	descriptors, struct operation, operations,
	"With any number of descriptors left, an operation leaks nothing, and the next try works.")
{
	refuse_all(refuse_descriptors, row);
}
