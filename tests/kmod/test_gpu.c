/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of GPU memory by the shipped provider, on a mock of NVIDIA's driver. */
#include "gpu_fixture.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

TEST(gpu_caps, "With a provider the capabilities give the provider's name and page size.")
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	int gpu = mockgpu_open(), ctx = gdm_open();

	EXPECT_EQ(gdm_call(ctx, GDMABUF_CAPS, &caps), 0);
	EXPECT_EQ(caps.out_gpu_page_size, GPU_PAGE);
	EXPECT(!strcmp(caps.out_provider, "nvidia"));
	close(ctx);
	close(gpu);
}

TEST(gpu_basic, "The CPU reads and writes GPU memory through the dma-buf.")
{
	struct setup s = gpu_test_begin();
	int fd = gpu_export(&s);
	unsigned char *view = dmabuf_map(fd, LENGTH, PROT_READ | PROT_WRITE);

	EXPECT(view);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	for (size_t i = 0; i < LENGTH; i++)
		view[i] = (unsigned char)~pattern_at(i);
	mockgpu_read(s.gpu, s.va, bytes, LENGTH);
	for (size_t i = 0; i < LENGTH; i++)
		bytes[i] = (unsigned char)~bytes[i];
	EXPECT_EQ(pattern_mismatches(bytes, LENGTH), 0);
	munmap(view, LENGTH);
	close(fd);
	gpu_test_end(&s);
}

TEST(gpu_scattered, "A dma-buf shows memory that is scattered in the BAR as one range.")
{
	struct setup s = gpu_test_begin_flags(MOCK_SCATTER);
	int fd = gpu_export(&s);
	unsigned char *view = dmabuf_map(fd, LENGTH, PROT_READ);

	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	view = mmap(NULL, 3 * GPU_PAGE, PROT_READ, MAP_SHARED, fd, GPU_PAGE + PAGE);
	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(memcmp(view, bytes + GPU_PAGE + PAGE, 3 * GPU_PAGE), 0);
	munmap(view, 3 * GPU_PAGE);
	close(fd);
	gpu_test_end(&s);
}

TEST(gpu_small, "An export may be a part of an allocation, of a single GPU page.")
{
	struct setup s = gpu_test_begin();
	unsigned char *view;
	int fd;

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + 2 * GPU_PAGE, GPU_PAGE, 0, &fd), 0);
	view = dmabuf_map(fd, GPU_PAGE, PROT_READ);
	EXPECT_EQ(memcmp(view, bytes + 2 * GPU_PAGE, GPU_PAGE), 0);
	munmap(view, GPU_PAGE);
	close(fd);
	gpu_test_end(&s);
}

TEST(gpu_unaligned,
     "An export of a range that does not consist of whole GPU pages fails with EINVAL.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va + GPU_PAGE / 2, GPU_PAGE, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, GPU_PAGE + GPU_PAGE / 2, 0, NULL), -EINVAL);
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

TEST(gpu_read_only, "An export of GPU memory with GDMABUF_READ_ONLY fails with EOPNOTSUPP.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, GDMABUF_READ_ONLY, NULL), -EOPNOTSUPP);
	EXPECT_EQ(mockgpu_stats(s.gpu).gets, s.before.gets);
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
	int fd = gpu_export(&s);
	unsigned char *a = dmabuf_map(fd, LENGTH, PROT_READ | PROT_WRITE);
	unsigned char *b = dmabuf_map(fd, LENGTH, PROT_READ);

	a[GPU_PAGE + 3] = 200;
	EXPECT_EQ(b[GPU_PAGE + 3], 200);
	munmap(a, LENGTH);
	EXPECT_EQ(b[GPU_PAGE + 3], 200);
	munmap(b, LENGTH);
	close(fd);
	gpu_test_end(&s);
}

TEST(gpu_mapping_outlives_descriptor, "A mapping outlives the descriptor and the context.")
{
	struct setup s = gpu_test_begin();
	int fd = gpu_export(&s);
	unsigned char *view = dmabuf_map(fd, LENGTH, PROT_READ);

	close(fd);
	close(s.ctx);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	s.ctx = gdm_open();
	gpu_test_end(&s);
}

TEST(gpu_kept_after_free,
     "After cudaFree the dma-buf keeps the memory, and no later allocation gets the memory.")
{
	struct setup s = gpu_test_begin();
	int fd = gpu_export(&s);
	unsigned char *view = dmabuf_map(fd, LENGTH, PROT_READ);
	uint64_t other;

	mockgpu_free(s.gpu, s.va);
	other = mockgpu_alloc(s.gpu, LENGTH, 0);
	EXPECT_EQ(other, s.va);
	memset(bytes, 0xee, LENGTH);
	mockgpu_write(s.gpu, other, bytes, LENGTH);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(fd);
	gpu_test_end(&s);
}

TEST(gpu_va_reuse, "After free and alloc at one address, an export shows the new memory.")
{
	struct setup s = gpu_test_begin();
	int old = gpu_export(&s), new;
	unsigned char *view;

	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(mockgpu_alloc(s.gpu, LENGTH, 0), s.va);
	memset(bytes, 0x77, LENGTH);
	mockgpu_write(s.gpu, s.va, bytes, LENGTH);
	new = gpu_export(&s);
	view = dmabuf_map(new, LENGTH, PROT_READ);
	EXPECT_EQ(memcmp(view, bytes, LENGTH), 0);
	munmap(view, LENGTH);
	close(old);
	close(new);
	gpu_test_end(&s);
}

TEST(gpu_twice, "Two exports of one range are two pins of the driver, each until its last close.")
{
	struct setup s = gpu_test_begin();
	long long before = gdm_read_total("gpu-bytes");
	int a = gpu_export(&s), b = gpu_export(&s), c = dup(b);

	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 2);
	EXPECT_EQ(gdm_read_total("gpu-bytes"), before + 2 * LENGTH);
	close(a);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 1);
	close(b);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 1);
	close(c);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 0);
	EXPECT_EQ(gdm_read_total("gpu-bytes"), before);
	gpu_test_end(&s);
}

TEST(gpu_beside_host, "Host memory and GPU memory at equal addresses are exported apart.")
{
	struct setup s = gpu_test_begin();
	void *at = (void *)(uintptr_t)s.va;
	int gpu = gpu_export(&s), host;
	unsigned char *view;

	EXPECT(mmap(at, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at);
	memset(at, 0x5e, PAGE);
	EXPECT_EQ(gdm_export_host(s.ctx, at, PAGE, 0, &host), 0);
	view = dmabuf_map(host, PAGE, PROT_READ);
	EXPECT_EQ(view[0], 0x5e);
	munmap(view, PAGE);
	view = dmabuf_map(gpu, PAGE, PROT_READ);
	EXPECT_EQ(view[0], pattern_at(0));
	munmap(view, PAGE);
	munmap(at, PAGE);
	close(host);
	close(gpu);
	gpu_test_end(&s);
}

TEST(gpu_mapping_is_not_host, "An export of a mapping of GPU memory as host memory fails: EFAULT.")
{
	struct setup s = gpu_test_begin();
	int fd = gpu_export(&s);
	unsigned char *view = dmabuf_map(fd, LENGTH, PROT_READ | PROT_WRITE);

	EXPECT_EQ(gdm_export_host(s.ctx, view, PAGE, 0, NULL), -EFAULT);
	EXPECT_EQ(gdm_export_host(s.ctx, view, PAGE, GDMABUF_READ_ONLY, NULL), -EFAULT);
	munmap(view, LENGTH);
	close(fd);
	gpu_test_end(&s);
}

TEST(gpu_no_answer,
     "If the answer cannot be written, the export fails with EFAULT and nothing stays pinned.")
{
	struct setup s = gpu_test_begin();
	struct gdmabuf_export *e = (void *)pages_new(PAGE, 0);

	*e = (struct gdmabuf_export){ .size = sizeof(*e), .address = s.va, .length = LENGTH };
	mprotect(e, PAGE, PROT_READ);
	EXPECT_EQ(gdm_call(s.ctx, GDMABUF_EXPORT_GPU, e), -EFAULT);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	munmap(e, PAGE);
	gpu_test_end(&s);
}

TEST(gpu_fdinfo, "The fdinfo of a dma-buf of GPU memory shows the exporter gdmabuf-gpu.")
{
	struct setup s = gpu_test_begin();
	int fd = gpu_export(&s);
	char path[64], text[1024];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	EXPECT(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	EXPECT(strstr(text, "exp_name:\tgdmabuf-gpu\n"));
	close(fd);
	gpu_test_end(&s);
}
