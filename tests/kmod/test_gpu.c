/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of GPU memory by the shipped provider, on a mock of NVIDIA's driver. */
#include "gpu_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

TEST(gpu_caps, "With a provider the capabilities give the provider's name and page size.")
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	int gpu = mockgpu_open(), ctx = gdm_open();

	EXPECT_EQ(gdm_call(ctx, GDMABUF_CAPS, &caps), 0);
	EXPECT(caps.out_caps & GDMABUF_CAP_GPU);
	EXPECT_EQ(caps.out_gpu_page_size, GPU_PAGE);
	EXPECT(!strcmp(caps.out_provider, "nvidia"));
	close(ctx);
	close(gpu);
}

TEST(gpu_basic, "The CPU reads and writes GPU memory through the dma-buf.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ | PROT_WRITE);

	EXPECT(view);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	for (size_t i = 0; i < LENGTH; i++)
		view[i] = (unsigned char)~pattern_at(i);
	mockgpu_read(s.gpu, s.va, bytes, LENGTH);
	for (size_t i = 0; i < LENGTH; i++)
		bytes[i] = (unsigned char)~bytes[i];
	EXPECT_EQ(pattern_mismatches(bytes, LENGTH), 0);
	munmap(view, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_scattered, "A dma-buf shows memory that is scattered in the BAR as one range.")
{
	struct setup s = gpu_test_begin_flags(MOCK_SCATTER);
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);

	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	view = mmap(NULL, 3 * GPU_PAGE, PROT_READ, MAP_SHARED, e.fd, GPU_PAGE + PAGE);
	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(memcmp(view, bytes + GPU_PAGE + PAGE, 3 * GPU_PAGE), 0);
	munmap(view, 3 * GPU_PAGE);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_small, "An export may be a part of an allocation, of a single GPU page.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e;
	unsigned char *view;

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + 2 * GPU_PAGE, GPU_PAGE, 0, &e), 0);
	view = dmabuf_map(e.fd, GPU_PAGE, PROT_READ);
	EXPECT_EQ(memcmp(view, bytes + 2 * GPU_PAGE, GPU_PAGE), 0);
	munmap(view, GPU_PAGE);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_unaligned,
     "An export of a range that does not consist of whole GPU pages fails with EINVAL.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + PAGE, GPU_PAGE, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, GPU_PAGE + PAGE, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 0, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_gpu(s.ctx, -(uint64_t)GPU_PAGE, 2 * GPU_PAGE, 0, NULL), -EINVAL);
	gpu_test_end(&s);
}

TEST(gpu_beyond, "An export beyond the end of the allocation fails with EFAULT.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH + GPU_PAGE, 0, NULL), -EFAULT);
	gpu_test_end(&s);
}

TEST(gpu_freed, "An export of freed memory fails with EFAULT.")
{
	struct setup s = gpu_test_begin();

	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), -EFAULT);
	gpu_test_end(&s);
}

TEST(gpu_two_mappings, "Two mappings of one dma-buf show equal bytes.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *a = dmabuf_map(e.fd, LENGTH, PROT_READ | PROT_WRITE);
	unsigned char *b = dmabuf_map(e.fd, LENGTH, PROT_READ);

	a[GPU_PAGE + 3] = 200;
	EXPECT_EQ(b[GPU_PAGE + 3], 200);
	munmap(a, LENGTH);
	EXPECT_EQ(b[GPU_PAGE + 3], 200);
	munmap(b, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_mapping_outlives_descriptor, "A mapping outlives the descriptor and the context.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);

	close(e.fd);
	close(s.ctx);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	s.ctx = gdm_open();
	gpu_test_end(&s);
}

TEST(gpu_hold_after_free,
     "HOLD: after cudaFree the dma-buf keeps the memory, and no later allocation gets the memory.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);
	uint64_t other;

	mockgpu_free(s.gpu, s.va);
	other = mockgpu_alloc(s.gpu, LENGTH, 0);
	EXPECT_EQ(other, s.va);
	memset(bytes, 0xee, LENGTH);
	mockgpu_write(s.gpu, other, bytes, LENGTH);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_free_is_seen, "HOLD: cudaFree changes the status word before cudaFree returns.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);

	EXPECT(gdm_is_valid(s.status, &e));
	mockgpu_free(s.gpu, s.va);
	EXPECT(!gdm_is_valid(s.status, &e));
	EXPECT_EQ(gdm_query(s.ctx, e.fd).out_state, GDMABUF_STALE);
	EXPECT_EQ(gdm_stats(s.ctx).out_stale, 1);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_free_by_thread,
     "HOLD: cudaFree changes the status word even if a thread of the driver calls back.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);

	EXPECT_EQ(mockgpu_try_free(s.gpu, s.va, MOCK_FREE_BY_THREAD), 0);
	EXPECT(!gdm_is_valid(s.status, &e));
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_sub_free, "If CUDA keeps a freed allocation in its block, the export stays valid.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);

	EXPECT_EQ(mockgpu_try_free(s.gpu, s.va, MOCK_FREE_SUB), 0);
	EXPECT(gdm_is_valid(s.status, &e));
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_free_kept, "A kept and idle pin goes when the memory is freed.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_KEEP);

	close(e.fd);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 1);
	mockgpu_free(s.gpu, s.va);
	EVENTUALLY(gdm_stats(s.ctx).out_gpu_pins == 0);
	EVENTUALLY(mockgpu_stats(s.gpu).pages_used == s.before.pages_used);
	gpu_test_end(&s);
}

TEST(gpu_va_reuse, "After free and alloc at one address, an export shows the new memory.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export old = gpu_export(&s, GDMABUF_KEEP), new;
	unsigned char *view;

	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(mockgpu_alloc(s.gpu, LENGTH, 0), s.va);
	memset(bytes, 0x77, LENGTH);
	mockgpu_write(s.gpu, s.va, bytes, LENGTH);
	new = gpu_export(&s, 0);
	view = dmabuf_map(new.fd, LENGTH, PROT_READ);
	EXPECT_EQ(memcmp(view, bytes, LENGTH), 0);
	munmap(view, LENGTH);
	EXPECT(gdm_is_valid(s.status, &new));
	EXPECT(!gdm_is_valid(s.status, &old));
	close(old.fd);
	close(new.fd);
	gpu_test_end(&s);
}

TEST(gpu_hit, "An export within a pinned range needs no further pin of the driver.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0), part;
	uint32_t gets = mockgpu_stats(s.gpu).gets;

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + GPU_PAGE, GPU_PAGE, 0, &part), 0);
	EXPECT_EQ(mockgpu_stats(s.gpu).gets, gets);
	close(e.fd);
	close(part.fd);
	gpu_test_end(&s);
}

TEST(gpu_unwatched,
     "An unwatched export is stale from the start, and its single pin serves no other export.")
{
	struct setup s = gpu_test_begin();
	uint32_t gets = mockgpu_stats(s.gpu).gets;
	struct gdm_export e = gpu_export(&s, GDMABUF_UNWATCHED), other;

	EXPECT_EQ(mockgpu_stats(s.gpu).gets, gets + 1);
	EXPECT(!gdm_is_valid(s.status, &e));
	EXPECT_EQ(gdm_query(s.ctx, e.fd).out_state, GDMABUF_STALE);
	other = gpu_export(&s, GDMABUF_UNWATCHED);
	EXPECT(other.slot != e.slot);
	EXPECT_EQ(mockgpu_stats(s.gpu).persistent, 2);
	close(e.fd);
	close(other.fd);
	gpu_test_end(&s);
}

TEST(gpu_unwatched_after_free, "The pages of an unwatched export stay after the memory is freed.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_UNWATCHED);

	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(mockgpu_stats(s.gpu).persistent, 1);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_unwatched_refused,
     "An export with GDMABUF_UNWATCHED and GDMABUF_REVOCABLE fails with EOPNOTSUPP.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e;

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, GPU_PAGE, GDMABUF_UNWATCHED | GDMABUF_REVOCABLE, &e),
		  -EOPNOTSUPP);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	gpu_test_end(&s);
}

TEST(gpu_drop, "GDMABUF_DROP unpins a kept pin and the watch.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_KEEP);

	close(e.fd);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 1);
	EXPECT_EQ(mockgpu_stats(s.gpu).persistent, 1);
	EXPECT_EQ(gdm_drop(s.ctx, &e), 0);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 0);
	EXPECT_EQ(mockgpu_stats(s.gpu).persistent, 0);
	gpu_test_end(&s);
}
