/* SPDX-License-Identifier: Apache-2.0 */
/* Which exports the kernel module makes, and how: on a fake module and a fake CUDA. */
#include "fake_gdmabuf.h"
#include "harness.h"

#include "import/cache/cache.h"
#include "import/export/export.h"
#include "import/export/origin.h"
#include "import/export/registration.h"
#include "util/log.h"

#include <errno.h>
#include <fake_cuda.h>
#include <linux/gdmabuf.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define GPU_PAGE 65536

static struct export_range export_range_of(uintptr_t address, size_t size, unsigned int options)
{
	struct export_range range;

	EXPECT_EQ(export_dmabuf(address, size, options, &range), 0);
	return range;
}

/* The dma-buf of an export, which is closed. */
static ino_t export_inode(uintptr_t address, size_t size, unsigned int options)
{
	struct export_range range = export_range_of(address, size, options);
	struct stat st;

	EXPECT_EQ(fstat(range.fd, &st), 0);
	close(range.fd);
	return st.st_ino;
}

static uint64_t export_count_pinned(void)
{
	struct cache_stats stats;

	export_stats(&stats);
	return stats.bytes_pinned;
}

static uintptr_t export_map_host(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return (uintptr_t)p;
}

/* The code under test asks the module for its exporters once, and CUDA for devices once. */
static void export_test_begin(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	fake_gdmabuf.has_gpu = true;
	fake_cuda_reset(1);
}

TEST(limit, "A limit of 0 keeps neither host memory nor GPU memory.")
{
	uintptr_t p = export_map_host(PAGE), gpu;

	export_test_begin();
	gpu = fake_cuda_alloc(0, GPU_PAGE);
	for (int is_gpu = 0; is_gpu <= 1; is_gpu++) {
		uintptr_t at = is_gpu ? gpu : p;

		close(export_range_of(at, PAGE, EXPORT_KEEP).fd);
		EXPECT(export_count_pinned());
		registration_set_limits(is_gpu, 0, UINT64_MAX);
		EXPECT_EQ(export_count_pinned(), 0);
		close(export_range_of(at, PAGE, EXPORT_KEEP).fd);
		EXPECT_EQ(export_count_pinned(), 0);
		registration_set_limits(is_gpu, UINT64_MAX, UINT64_MAX);
		close(export_range_of(at, PAGE, EXPORT_KEEP).fd);
		EXPECT(export_count_pinned());
		export_invalidate(at, PAGE);
	}
	fake_cuda_free(gpu);
	munmap((void *)p, PAGE);
}

static int export_origin_find(int fd, uintptr_t *address)
{
	struct descriptor_id id;
	int ret = descriptor_identify(fd, &id);

	return ret ? ret : origin_find(&id, address);
}

TEST(by_module, "An export by the module of CUDA memory is pinned once, and remembered as long as "
		"CUDA has the memory.")
{
	uintptr_t p, address = 0;
	struct export_range range;

	export_test_begin();
	p = fake_cuda_alloc(0, 2 * GPU_PAGE);
	range = export_range_of(p, PAGE, EXPORT_MAPPABLE);
	EXPECT_EQ(export_origin_find(range.fd, &address), 0);
	EXPECT_EQ(address, p - range.offset);
	fake_cuda_free(p);
	EXPECT_EQ(export_origin_find(range.fd, &address), -ENODEV);
	EXPECT_EQ(fake_cuda_alloc_at(0, 2 * GPU_PAGE, p), p);
	EXPECT_EQ(export_origin_find(range.fd, &address), -ENODEV);
	close(range.fd);
	fake_cuda_free(p);
}

TEST(kept_mappable, "With EXPORT_MAPPABLE the module's dma-buf is kept, beside CUDA's own.")
{
	ino_t mappable, plain;
	uintptr_t p;

	export_test_begin();
	p = fake_cuda_alloc(0, 2 * GPU_PAGE);
	plain = export_inode(p, PAGE, EXPORT_KEEP);
	mappable = export_inode(p, PAGE, EXPORT_MAPPABLE | EXPORT_KEEP);
	EXPECT(plain != mappable);
	fake_gdmabuf.error = EIO;
	EXPECT_EQ(export_inode(p + GPU_PAGE, PAGE, EXPORT_KEEP), plain);
	EXPECT_EQ(export_inode(p + GPU_PAGE, PAGE, EXPORT_MAPPABLE | EXPORT_KEEP), mappable);
	fake_gdmabuf.error = 0;
	EXPECT_EQ(export_count_pinned(), 4 * GPU_PAGE);
	export_invalidate(p, PAGE);
	EXPECT_EQ(export_count_pinned(), 0);
	fake_cuda_free(p);
}

TEST(several_allocations, "A range of several allocations is not kept by the module.")
{
	struct fake_cuda_segment segments[] = { { 0, FAKE_CUDA_GRANULARITY, 1 },
						{ 0, FAKE_CUDA_GRANULARITY, 1 } };
	uintptr_t p;
	ino_t first;

	export_test_begin();
	p = fake_cuda_vmm(segments, 2);
	first = export_inode(p, FAKE_CUDA_GRANULARITY + PAGE, EXPORT_MAPPABLE | EXPORT_KEEP);
	EXPECT_EQ(export_count_pinned(), 0);
	EXPECT(export_inode(p, FAKE_CUDA_GRANULARITY + PAGE, EXPORT_MAPPABLE | EXPORT_KEEP) !=
	       first);
	fake_cuda_vmm_free(p);
}

TEST(unknown_gpu, "GPU memory that CUDA does not know is exported, and not kept.")
{
	uintptr_t p = export_map_host(GPU_PAGE);
	struct export_range range;

	export_test_begin();
	fake_gdmabuf.host_error = EFAULT;
	range = export_range_of(p, PAGE, EXPORT_KEEP);
	fake_gdmabuf.host_error = 0;
	EXPECT_EQ(range.whole,
		  p & (GPU_PAGE - 1) && range.offset + PAGE > GPU_PAGE ? 2 * GPU_PAGE : GPU_PAGE);
	EXPECT_EQ(export_count_pinned(), 0);
	close(range.fd);
	munmap((void *)p, GPU_PAGE);
}

static uintptr_t to_be_freed;

static void free_now(void)
{
	fake_gdmabuf.exporting = NULL;
	fake_cuda_free(to_be_freed);
	EXPECT_EQ(fake_cuda_alloc_at(0, GPU_PAGE, to_be_freed), to_be_freed);
}

static const struct freed_row {
	const char *name;
	unsigned int options;
} freed_rows[] = {
	{ "plain", EXPORT_MAPPABLE },
	{ "kept", EXPORT_MAPPABLE | EXPORT_KEEP },
};

TEST_EACH(freed_meanwhile, struct freed_row, freed_rows,
	  "If the memory is freed during the export, the error is -ENODEV and no descriptor is "
	  "left.")
{
	struct export_range range = { -7, 7, 7 };
	uintptr_t p;

	export_test_begin();
	p = fake_cuda_alloc(0, GPU_PAGE);
	to_be_freed = p;
	fake_gdmabuf.exporting = free_now;
	EXPECT_EQ(export_dmabuf(p, PAGE, row->options, &range), -ENODEV);
	EXPECT(strstr(log_last(), "freed meanwhile"));
	EXPECT_EQ(range.fd, -7);
	EXPECT_EQ(export_count_pinned(), 0);
	fake_cuda_free(p);
}

/* The number of calls of libcuda in an export of @p. */
static int export_count_calls(uintptr_t p, unsigned int options)
{
	int before = fake_cuda_calls(NULL);

	close(export_range_of(p, PAGE, options).fd);
	return fake_cuda_calls(NULL) - before;
}

TEST(identified_once, "An export identifies the memory once, with eight calls of libcuda.")
{
	uintptr_t p;

	export_test_begin();
	p = fake_cuda_alloc(0, GPU_PAGE);
	close(export_range_of(p, PAGE, 0).fd); /* sets SYNC_MEMOPS */
	EXPECT_EQ(export_count_calls(p, 0), 8);
	EXPECT_EQ(export_count_calls(p, EXPORT_KEEP), 8);
	EXPECT_EQ(export_count_calls(p, EXPORT_KEEP), 1); /* the buffer id */
	export_invalidate(p, PAGE);
	fake_cuda_free(p);
}

TEST(vmm_identified_once,
     "An export of VMM memory identifies the memory once.  A later export needs "
     "neither the memory's handle nor a refusal of SYNC_MEMOPS.")
{
	const struct fake_cuda_segment segment = { 0, FAKE_CUDA_GRANULARITY, 1 };
	uintptr_t p;

	export_test_begin();
	fake_cuda_set_no_vmm_sync(true);
	p = fake_cuda_vmm(&segment, 1);
	EXPECT_EQ(export_count_calls(p, 0), 16); /* six identify, five for a context */
	EXPECT_EQ(export_count_calls(p, 0), 12);
	fake_cuda_vmm_replace(p);
	EXPECT_EQ(export_count_calls(p, 0), 16);
	EXPECT_EQ(export_count_calls(p, 0), 12);
	fake_cuda_vmm_free(p);
}

/* Makes the module the only exporter of the memory. */
static void export_without_cuda(bool without)
{
	fake_cuda_set_attribute(0, 124, !without); /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */
}

static bool export_find_gpu(uintptr_t address, size_t size, struct registration *registration)
{
	*registration = (struct registration){ 0 };
	return registration_find(REGISTRATION_BY_CUDA, REGISTRATION_BY_MODULE, address, size,
				 &registration->ref);
}

TEST(registered_by_module, "A registration made by the module is of the allocation, and a hit asks "
			   "CUDA for the buffer id "
			   "alone.")
{
	struct registration first, again;
	uintptr_t p;
	int calls, module;

	export_test_begin();
	export_without_cuda(true);
	p = fake_cuda_alloc(0, 2 * GPU_PAGE);
	EXPECT_EQ(export_register(p, PAGE, &first), 0);
	EXPECT_EQ(first.ref.pin->base, p);
	EXPECT_EQ(first.ref.pin->size, 2 * GPU_PAGE);
	calls = fake_cuda_calls(NULL);
	module = fake_gdmabuf.calls;
	EXPECT(export_find_gpu(p + GPU_PAGE, PAGE, &again));
	EXPECT_EQ(again.ref.pin->number, first.ref.pin->number);
	EXPECT_EQ(fake_cuda_calls(NULL), calls + 1);
	EXPECT_EQ(fake_gdmabuf.calls, module);
	export_unregister(&again);
	export_unregister(&first);
	export_invalidate(p, PAGE);
	export_without_cuda(false);
	fake_cuda_free(p);
}

TEST(registered_by_module_stale, "A registration by the module of freed memory is not found.")
{
	struct registration first, again;
	uintptr_t p;

	export_test_begin();
	export_without_cuda(true);
	p = fake_cuda_alloc(0, 2 * GPU_PAGE);
	EXPECT_EQ(export_register(p, PAGE, &first), 0);
	fake_cuda_free(p);
	EXPECT_EQ(fake_cuda_alloc_at(0, 2 * GPU_PAGE, p), p);
	EXPECT(!export_find_gpu(p, PAGE, &again));
	EXPECT_EQ(export_register(p, PAGE, &again), 0);
	EXPECT(again.ref.pin->number != first.ref.pin->number);
	export_unregister(&again);
	export_unregister(&first);
	export_invalidate(p, PAGE);
	export_without_cuda(false);
	fake_cuda_free(p);
}

TEST(registered_by_module_kept, "A kept export finds the registration made by the module.")
{
	struct registration registration;
	struct export_range range;
	uintptr_t p, address = 0;

	export_test_begin();
	export_without_cuda(true);
	p = fake_cuda_alloc(0, 2 * GPU_PAGE);
	EXPECT_EQ(export_register(p, PAGE, &registration), 0);
	fake_gdmabuf.error = EIO;
	range = export_range_of(p + PAGE, PAGE, EXPORT_KEEP);
	fake_gdmabuf.error = 0;
	EXPECT_EQ(range.offset, registration.ref.pin->offset + PAGE);
	EXPECT_EQ(export_origin_find(range.fd, &address), 0);
	EXPECT_EQ(address, p - registration.ref.pin->offset);
	close(range.fd);
	export_unregister(&registration);
	export_invalidate(p, PAGE);
	export_without_cuda(false);
	fake_cuda_free(p);
}

static const struct module_error {
	const char *name;
	int error;
} module_errors[] = {
	{ "eacces", EACCES }, { "edquot", EDQUOT }, { "enospc", ENOSPC },
	{ "enomem", ENOMEM }, { "emfile", EMFILE },
};

TEST_EACH(register_refused, struct module_error, module_errors,
	  "A registration returns the module's error.")
{
	struct registration registration;
	uintptr_t p;

	export_test_begin();
	export_without_cuda(true);
	p = fake_cuda_alloc(0, GPU_PAGE);
	fake_gdmabuf.error = row->error;
	EXPECT_EQ(export_register(p, PAGE, &registration), -row->error);
	fake_gdmabuf.error = 0;
	EXPECT_EQ(export_count_pinned(), 0);
	export_without_cuda(false);
	fake_cuda_free(p);
}

TEST(register_freed_meanwhile,
     "If the memory was freed before the module pinned, a registration by the module is -ENODEV.")
{
	struct registration registration;
	uintptr_t p;

	export_test_begin();
	export_without_cuda(true);
	p = fake_cuda_alloc(0, GPU_PAGE);
	to_be_freed = p;
	fake_gdmabuf.exporting = free_now;
	EXPECT_EQ(export_register(p, PAGE, &registration), -ENODEV);
	export_without_cuda(false);
	fake_cuda_free(p);
}

#define EXPORT_OPTIONS_END (EXPORT_MAPPABLE << 1)

static void export_expect_sentence(uintptr_t address, unsigned int options)
{
	struct export_range range;
	int ret;

	log_clear();
	ret = export_dmabuf(address, PAGE, options, &range);
	if (!ret)
		close(range.fd);
	if (ret && !*log_last())
		printf("# %#zx with options %#x: %d\n", (size_t)address, options, ret);
	EXPECT(!ret || *log_last());
}

TEST(refused_sentence,
     "A refused export has a sentence, whatever the memory, the flags and the module's error.")
{
	uintptr_t host = export_map_host(PAGE), gpu;

	export_test_begin();
	gpu = fake_cuda_alloc(0, GPU_PAGE);
	for (unsigned int options = 0; options < EXPORT_OPTIONS_END; options++) {
		for (int error = 0; error <= EFAULT; error += EFAULT) {
			fake_gdmabuf.error = error;
			export_expect_sentence(host, options);
			export_expect_sentence(PAGE, options);
			export_expect_sentence(gpu, options);
		}
	}
	fake_gdmabuf.error = 0;
	export_invalidate(host, PAGE);
	export_invalidate(PAGE, PAGE);
	export_invalidate(gpu, GPU_PAGE);
	fake_cuda_free(gpu);
	munmap((void *)host, PAGE);
}
