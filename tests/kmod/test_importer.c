/* SPDX-License-Identifier: Apache-2.0 */
/* What devices may do with the dma-bufs, and what they see: DMA by QEMU's edu, a PCI device. */
#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <libdrm/drm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 8 * GPU_PAGE, PIECE = 2048 };

static unsigned char bytes[LENGTH];

struct setup {
	int gpu, ctx, importer;
	uint64_t va;
	struct gdm_export e;
};

static struct setup import_test_begin(uint32_t alloc_flags, uint32_t export_flags)
{
	struct setup s = { .gpu = mockgpu_open(),
			   .ctx = gdm_open(),
			   .importer = test_importer_open() };

	s.va = mockgpu_alloc(s.gpu, LENGTH, alloc_flags);
	pattern_fill(bytes, LENGTH);
	mockgpu_write(s.gpu, s.va, bytes, LENGTH);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, export_flags, &s.e), 0);
	return s;
}

static void import_test_end(struct setup *s)
{
	close(s->importer);
	close(s->e.fd);
	close(s->ctx);
	mockgpu_try_free(s->gpu, s->va, 0);
	EVENTUALLY(mockgpu_stats(s->gpu).pins == 0 && mockgpu_stats(s->gpu).persistent == 0);
	close(s->gpu);
}

static struct setup setup_host(unsigned char *p, uint32_t flags)
{
	struct setup s = { .gpu = mockgpu_open(),
			   .ctx = gdm_open(),
			   .importer = test_importer_open() };

	EXPECT_EQ(gdm_export_host(s.ctx, p, LENGTH, flags, &s.e), 0);
	return s;
}

static int import_attach(const struct setup *s, uint32_t mode, uint32_t flags)
{
	return test_importer_attach(s->importer, s->e.fd, mode, flags,
				    GDMABUF_IMPORTER_BIDIRECTIONAL);
}

static int has_edu(const struct setup *s)
{
	struct gdmabuf_importer_attach arg = { .fd = s->e.fd };

	EXPECT_EQ(ioctl(s->importer, GDMABUF_IMPORTER_ATTACH, &arg), 0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_DETACH, 0), 0);
	return (int)arg.out_edu;
}

static void need_edu(struct setup *s)
{
	if (!has_edu(s)) {
		import_test_end(s);
		test_skip("no edu device: run with --edu");
	}
}

TEST(dma_gpu, "A PCI device reads and writes the GPU's memory by DMA, byte for byte.")
{
	struct setup s = import_test_begin(0, 0);
	struct gdmabuf_importer_map map;
	unsigned char got[PIECE];

	need_edu(&s);
	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_PINNED, GDMABUF_IMPORTER_PEER2PEER), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	EXPECT_EQ(
		importer_access(s.importer, GDMABUF_IMPORTER_READ, 3 * GPU_PAGE - 1024, got, PIECE),
		0);
	EXPECT_EQ(memcmp(got, bytes + 3 * GPU_PAGE - 1024, PIECE), 0);
	memset(got, 0x3c, PIECE);
	EXPECT_EQ(importer_access(s.importer, GDMABUF_IMPORTER_WRITE, LENGTH - PIECE, got, PIECE),
		  0);
	mockgpu_read(s.gpu, s.va, bytes, LENGTH);
	EXPECT_EQ(memcmp(bytes + LENGTH - PIECE, got, PIECE), 0);
	EXPECT_EQ(pattern_mismatches(bytes, LENGTH - PIECE), 0);
	import_test_end(&s);
}

TEST(dma_scattered, "DMA across runs that are apart in the BAR gets the right bytes.")
{
	struct setup s = import_test_begin(MOCK_SCATTER, 0);
	struct gdmabuf_importer_map map;
	unsigned char got[PIECE];

	need_edu(&s);
	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_PINNED, GDMABUF_IMPORTER_PEER2PEER), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	for (int i = 1; i < 4; i++) {
		EXPECT_EQ(importer_access(s.importer, GDMABUF_IMPORTER_READ,
					  i * GPU_PAGE - PIECE / 2, got, PIECE),
			  0);
		EXPECT_EQ(memcmp(got, bytes + i * GPU_PAGE - PIECE / 2, PIECE), 0);
	}
	import_test_end(&s);
}

TEST(dma_host, "A PCI device reads and writes the process's memory by DMA.")
{
	unsigned char *p = pages_new(LENGTH, 1), got[PIECE];
	struct setup s = setup_host(p, 0);
	struct gdmabuf_importer_map map;

	need_edu(&s);
	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	EXPECT_EQ(importer_access(s.importer, GDMABUF_IMPORTER_READ, PAGE - 1000, got, PIECE), 0);
	EXPECT_EQ(memcmp(got, p + PAGE - 1000, PIECE), 0);
	memset(got, 0x77, PIECE);
	EXPECT_EQ(importer_access(s.importer, GDMABUF_IMPORTER_WRITE, 0, got, PIECE), 0);
	EXPECT_EQ(memcmp(got, p, PIECE), 0);
	import_test_end(&s);
}

TEST(dma_after_free,
     "HOLD: DMA after cudaFree reads and writes what the dma-buf holds, nobody else's memory.")
{
	struct setup s = import_test_begin(0, 0);
	struct gdmabuf_importer_map map;
	unsigned char got[PIECE];
	uint64_t other;

	need_edu(&s);
	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	mockgpu_free(s.gpu, s.va);
	other = mockgpu_alloc(s.gpu, LENGTH, 0);
	memset(got, 0x99, PIECE);
	EXPECT_EQ(importer_access(s.importer, GDMABUF_IMPORTER_WRITE, 0, got, PIECE), 0);
	mockgpu_read(s.gpu, other, bytes, LENGTH);
	EXPECT(memcmp(bytes, got, PIECE));
	EXPECT_EQ(importer_access(s.importer, GDMABUF_IMPORTER_READ, PIECE, got, PIECE), 0);
	for (size_t i = 0; i < PIECE; i++)
		EXPECT_EQ(got[i], pattern_at(PIECE + i));
	import_test_end(&s);
}

TEST(sg_no_pages, "The scatterlist of GPU memory has no struct pages, and DMA addresses of it all.")
{
	struct setup s = import_test_begin(0, 0);
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	EXPECT_EQ(map.out_orig_nents, 0);
	EXPECT_EQ(map.out_length, LENGTH);
	import_test_end(&s);
}

TEST(sg_one_range,
     "What is contiguous in the BAR is one range for the device, in segments of whole pages that "
     "it can take.")
{
	struct setup s = import_test_begin(0, 0);
	struct gdmabuf_importer_attach arg = { .fd = s.e.fd, .max_segment = 3 * PAGE + 100 };
	struct gdmabuf_importer_map map;

	EXPECT_EQ(ioctl(s.importer, GDMABUF_IMPORTER_ATTACH, &arg), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	EXPECT_EQ(map.out_ranges, 1);
	EXPECT_EQ(map.out_largest, 3 * PAGE);
	EXPECT_EQ(map.out_length, LENGTH);
	EXPECT_EQ(map.out_nents, (LENGTH + 3 * PAGE - 1) / (3 * PAGE));
	import_test_end(&s);
}

/* Some kernels map for some importers as soon as they attach. */
static int attach_and_map(const struct setup *s, struct gdmabuf_importer_attach arg)
{
	struct gdmabuf_importer_map map;
	int err;

	arg.fd = s->e.fd;
	err = ioctl(s->importer, GDMABUF_IMPORTER_ATTACH, &arg) ? -errno : 0;
	if (!err)
		err = test_importer_map(s->importer, &map);
	importer_call(s->importer, GDMABUF_IMPORTER_DETACH, 0);
	return err;
}

static void map_tiny_segments(struct setup *s)
{
	const struct gdmabuf_importer_attach arg = { .max_segment = PAGE - 1 };

	EXPECT_EQ(attach_and_map(s, arg), -EINVAL);
	import_test_end(s);
}

TEST(sg_tiny_segments, "A device whose segments are smaller than a page gets EINVAL, of both kinds "
		       "of memory.")
{
	struct setup s = import_test_begin(0, 0), host = setup_host(pages_new(LENGTH, 1), 0);

	map_tiny_segments(&s);
	map_tiny_segments(&host);
}

TEST(sg_host, "The scatterlist of host memory has struct pages, and DMA addresses of it all.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct setup s = setup_host(p, 0);
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, GDMABUF_IMPORTER_PLATFORM_DEVICE), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	EXPECT(map.out_orig_nents > 0);
	EXPECT_EQ(map.out_length, LENGTH);
	import_test_end(&s);
}

/* Whether @word is a parameter that the kernel was started with. */
static int booted_with(const char *word)
{
	FILE *f = fopen("/proc/cmdline", "r");
	char line[4096] = "";

	EXPECT(f && fgets(line, sizeof(line), f));
	fclose(f);
	return !!strstr(line, word);
}

TEST(sg_bounced, "A device whose DMA goes through bounce buffers maps more memory in a row than a "
		 "bounce buffer holds.")
{
	struct setup s = { .gpu = mockgpu_open(),
			   .ctx = gdm_open(),
			   .importer = test_importer_open() };
	struct gdmabuf_importer_attach arg = { .max_segment = UINT32_MAX };
	struct gdmabuf_importer_map map;
	unsigned char *p = huge_pages_new(1, 1);

	if (!booted_with("swiotlb=force"))
		test_skip("no bounce buffers: boot with swiotlb=force");
	if (!p)
		test_skip("no huge pages");
	EXPECT_EQ(gdm_export_host(s.ctx, p, HUGE_PAGE, 0, &s.e), 0);
	arg.fd = s.e.fd;
	EXPECT_EQ(ioctl(s.importer, GDMABUF_IMPORTER_ATTACH, &arg), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	EXPECT_EQ(map.out_length, HUGE_PAGE);
	EXPECT(map.out_largest < HUGE_PAGE);
	EXPECT_EQ(map.out_largest % PAGE, 0);
	import_test_end(&s);
}

TEST(attach_not_pci, "A device that is not on a PCI bus imports GPU memory.")
{
	struct setup s = import_test_begin(0, 0);
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, GDMABUF_IMPORTER_PLATFORM_DEVICE), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	import_test_end(&s);
}

TEST(attach_needs_pages, "EOPNOTSUPP for a dynamic importer of GPU memory that needs struct pages; "
			 "host memory it gets.")
{
	struct setup s = import_test_begin(0, 0);
	struct gdm_export host;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_DYNAMIC, 0), -EOPNOTSUPP);
	EXPECT_EQ(gdm_export_host(s.ctx, pages_new(LENGTH, 1), LENGTH, 0, &host), 0);
	EXPECT_EQ(test_importer_attach(s.importer, host.fd, GDMABUF_IMPORTER_DYNAMIC, 0,
				       GDMABUF_IMPORTER_BIDIRECTIONAL),
		  0);
	close(host.fd);
	import_test_end(&s);
}

TEST(attach_not_listed,
     "EOPNOTSUPP for a static importer of GPU memory whose driver is not in static_importers.")
{
	struct setup s = import_test_begin(0, 0);
	char old[256];

	snprintf(old, sizeof(old), "%s",
		 parameter_set("gdmabuf", "static_importers",
			       "vivid gdmabuf_importer2 xgdmabuf_importer"));
	old[strcspn(old, "\n")] = '\0';
	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), -EOPNOTSUPP);
	parameter_set("gdmabuf", "static_importers", "vivid gdmabuf_importer\n");
	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_DETACH, 0), 0);
	parameter_set("gdmabuf", "static_importers", "*\n");
	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_DETACH, 0), 0);
	parameter_set("gdmabuf", "static_importers", old);
	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	import_test_end(&s);
}

TEST(attach_bare,
     "A static importer without driver, bus and class gets host memory, and EOPNOTSUPP "
     "for GPU memory.")
{
	struct setup s = import_test_begin(0, 0), host = setup_host(pages_new(LENGTH, 1), 0);
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, GDMABUF_IMPORTER_BARE_DEVICE),
		  -EOPNOTSUPP);
	EXPECT_EQ(import_attach(&host, GDMABUF_IMPORTER_STATIC, GDMABUF_IMPORTER_BARE_DEVICE), 0);
	EXPECT_EQ(test_importer_map(host.importer, &map), 0);
	import_test_end(&s);
	import_test_end(&host);
}

TEST(attach_revocable,
     "EOPNOTSUPP for every kind of importer of revocable memory, before and after "
     "it is freed.")
{
	struct setup s = import_test_begin(0, GDMABUF_REVOCABLE);

	for (int freed = 0; freed <= 1; freed++) {
		EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), -EOPNOTSUPP);
		EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_PINNED, GDMABUF_IMPORTER_PEER2PEER),
			  -EOPNOTSUPP);
		EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_DYNAMIC, GDMABUF_IMPORTER_PEER2PEER),
			  -EOPNOTSUPP);
		if (!freed)
			mockgpu_free(s.gpu, s.va);
	}
	import_test_end(&s);
}

/* ---- many dma-bufs on one pin ---- */

enum { MANY = 400 };

/* A descriptor of a fence that is signalled when @importer is closed. */
static int unsignalled_fence(const struct setup *s, int *importer)
{
	struct dma_buf_export_sync_file arg = { .flags = DMA_BUF_SYNC_RW };
	struct gdm_export host;

	*importer = test_importer_open();
	EXPECT_EQ(gdm_export_host(s->ctx, pages_new(PAGE, 1), PAGE, 0, &host), 0);
	EXPECT_EQ(test_importer_attach(*importer, host.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_BIDIRECTIONAL),
		  0);
	EXPECT_EQ(importer_call(*importer, GDMABUF_IMPORTER_FENCE, GDMABUF_IMPORTER_FENCE_WRITE),
		  0);
	if (ioctl(host.fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &arg))
		test_skip("DMA_BUF_IOCTL_EXPORT_SYNC_FILE: %s", strerror(errno));
	close(host.fd);
	return arg.fd;
}

static void attach_fence(int dmabuf, int fence)
{
	struct dma_buf_import_sync_file arg = { .flags = DMA_BUF_SYNC_RW, .fd = fence };

	EXPECT_EQ(ioctl(dmabuf, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &arg), 0);
}

static long import_clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

/* How long freeing memory takes that has MANY dma-bufs, of which each has @fence if that is not -1. */
static long free_of_many_takes(int fence)
{
	static int fds[MANY];
	struct setup s = import_test_begin(0, GDMABUF_REVOCABLE);
	struct gdm_export e;
	long begin, took;

	for (int i = 0; i < MANY; i++) {
		EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, GDMABUF_REVOCABLE, &e), 0);
		if (fence >= 0)
			attach_fence(e.fd, fence);
		fds[i] = e.fd;
	}
	begin = import_clock_us();
	mockgpu_free(s.gpu, s.va);
	took = import_clock_us() - begin;
	EXPECT_EQ(gdm_query(s.ctx, fds[0]).out_state, GDMABUF_STALE | GDMABUF_REVOKED);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	import_test_end(&s);
	return took;
}

TEST(revoke_fenced, "cudaFree of memory with 400 fenced dma-bufs waits for none of the fences.")
{
	struct setup s = setup_host(pages_new(LENGTH, 1), 0);
	int importer, fence = unsignalled_fence(&s, &importer);
	long fenced, unfenced;

	/* The fence is signalled after that: who waited for it would be here for ever. */
	unfenced = free_of_many_takes(-1);
	fenced = free_of_many_takes(fence);
	printf("# a free with %d dma-bufs on the memory took %ld us, with a fence on each %ld us\n",
	       MANY, unfenced, fenced);
	close(fence);
	close(importer);
	import_test_end(&s);
}

TEST(read_only_device,
     "EACCES for a device that would write to a read-only export; to read it is mapped.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct setup s = setup_host(p, GDMABUF_READ_ONLY);
	struct gdmabuf_importer_map map;

	EXPECT_EQ(test_importer_attach(s.importer, s.e.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_FROM_DEVICE),
		  0);
	EXPECT_EQ(test_importer_map(s.importer, &map), -EACCES);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_DETACH, 0), 0);
	EXPECT_EQ(test_importer_attach(s.importer, s.e.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_TO_DEVICE),
		  0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	import_test_end(&s);
}

TEST(read_only_bidirectional,
     "EACCES for a device that would read and write a read-only export, whatever kind of importer.")
{
	struct setup s = setup_host(pages_new(LENGTH, 1), GDMABUF_READ_ONLY);

	for (uint32_t mode = GDMABUF_IMPORTER_STATIC; mode <= GDMABUF_IMPORTER_DYNAMIC; mode++)
		EXPECT_EQ(attach_and_map(&s, (struct gdmabuf_importer_attach){ .mode = mode }),
			  -EACCES);
	import_test_end(&s);
}

/*
 * Kernels before 6.16 map for importers with operations when they attach, and for both directions;
 * or, of an exporter that can pin, so for all others.
 */
TEST(read_only_with_operations, "An importer with operations that only reads gets a read-only "
				"export, or EACCES before Linux 6.16.")
{
	static const uint32_t modes[] = { GDMABUF_IMPORTER_PINNED, GDMABUF_IMPORTER_DYNAMIC };
	struct setup s = setup_host(pages_new(LENGTH, 1), GDMABUF_READ_ONLY);
	int major, minor, expected;
	struct utsname name;

	EXPECT_EQ(uname(&name), 0);
	EXPECT_EQ(sscanf(name.release, "%d.%d", &major, &minor), 2);
	expected = major < 6 || (major == 6 && minor < 16) ? -EACCES : 0;
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(attach_and_map(&s,
					 (struct gdmabuf_importer_attach){
						 .mode = modes[i],
						 .direction = GDMABUF_IMPORTER_TO_DEVICE,
					 }),
			  expected);
	import_test_end(&s);
}

/* An attachment to a read-only export of a file that the process may only read. */
static struct setup setup_read_only_file(int *file)
{
	unsigned char *p;

	*file = memfd_create("file", MFD_CLOEXEC);
	EXPECT_EQ(ftruncate(*file, LENGTH), 0);
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
	EXPECT(p != MAP_FAILED);
	pattern_fill(p, LENGTH);
	munmap(p, LENGTH);
	p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, *file, 0);
	EXPECT(p != MAP_FAILED);
	return setup_host(p, GDMABUF_READ_ONLY);
}

static void file_is_as_it_was(int file)
{
	static unsigned char got[LENGTH];

	EXPECT_EQ(pread(file, got, LENGTH, 0), LENGTH);
	EXPECT_EQ(pattern_mismatches(got, LENGTH), 0);
	close(file);
}

static unsigned char *import_mmap(const struct setup *s, int prot, int flags)
{
	EXPECT_EQ(test_importer_attach(s->importer, s->e.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_TO_DEVICE),
		  0);
	return mmap(NULL, LENGTH, prot, flags, s->importer, 0);
}

TEST(importer_mmap,
     "A driver that maps what it imported into a process shows the memory, and writes "
     "it.")
{
	unsigned char *p = pages_new(LENGTH, 1), *view;
	struct setup s = setup_host(p, 0);

	view = import_mmap(&s, PROT_READ | PROT_WRITE, MAP_SHARED);
	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	view[PAGE] = 0x5a;
	EXPECT_EQ(p[PAGE], 0x5a);
	munmap(view, LENGTH);
	import_test_end(&s);
}

TEST(read_only_importer_mmap,
     "EACCES when a driver that imported a read-only export maps it writable into a process.")
{
	int file;
	struct setup s = setup_read_only_file(&file);
	unsigned char *view = import_mmap(&s, PROT_READ | PROT_WRITE, MAP_SHARED);

	if (view != MAP_FAILED)
		view[0] = 0x66;
	file_is_as_it_was(file);
	EXPECT(view == MAP_FAILED);
	EXPECT_EQ(errno, EACCES);
	import_test_end(&s);
}

TEST(read_only_importer_private,
     "EINVAL when a driver that imported a read-only export maps it privately into a process.")
{
	int file;
	struct setup s = setup_read_only_file(&file);

	EXPECT(import_mmap(&s, PROT_READ, MAP_PRIVATE) == MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	file_is_as_it_was(file);
	import_test_end(&s);
}

TEST(read_only_importer_mprotect,
     "A mapping of a read-only export that a driver made for reading stays so: mprotect() gives "
     "EACCES.")
{
	int file;
	struct setup s = setup_read_only_file(&file);
	unsigned char *view = import_mmap(&s, PROT_READ, MAP_SHARED);
	int err;

	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	err = mprotect(view, LENGTH, PROT_READ | PROT_WRITE) ? errno : 0;
	if (!err)
		view[0] = 0x66;
	file_is_as_it_was(file);
	EXPECT_EQ(err, EACCES);
	munmap(view, LENGTH);
	import_test_end(&s);
}

TEST(read_only_ptrace,
     "A mapping of a read-only export is not written by way of /proc/self/mem, whoever made it.")
{
	int file, mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	struct setup s = setup_read_only_file(&file);
	unsigned char *views[] = { import_mmap(&s, PROT_READ, MAP_SHARED),
				   dmabuf_map(s.e.fd, LENGTH, PROT_READ) };

	for (int i = 0; i < 2; i++) {
		EXPECT(views[i] && views[i] != MAP_FAILED);
		EXPECT_EQ(pwrite(mem, "x", 1, (off_t)(uintptr_t)views[i]), -1);
		munmap(views[i], LENGTH);
	}
	file_is_as_it_was(file);
	close(mem);
	import_test_end(&s);
}

TEST(read_only_moved,
     "A mapping of a read-only export cannot be written after mremap() and remap_file_pages().")
{
	int file;
	struct setup s = setup_read_only_file(&file);
	unsigned char *view = import_mmap(&s, PROT_READ, MAP_SHARED), *moved;

	moved = mremap(view, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, pages_new(LENGTH, 0));
	EXPECT(moved != MAP_FAILED);
	EXPECT_EQ(pattern_mismatches(moved, LENGTH), 0);
	EXPECT_EQ(mprotect(moved, PAGE, PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(errno, EACCES);
	remap_file_pages(moved, PAGE, 0, 1, 0);
	EXPECT_EQ(mprotect(moved, PAGE, PROT_READ | PROT_WRITE), -1);
	file_is_as_it_was(file);
	munmap(moved, LENGTH);
	import_test_end(&s);
}

TEST(read_only_cpu_access,
     "EACCES for a bracket of writes by the CPU to a read-only export; a bracket of reads works.")
{
	static const uint32_t writes[] = { GDMABUF_IMPORTER_TO_DEVICE,
					   GDMABUF_IMPORTER_BIDIRECTIONAL };
	struct setup s = setup_host(pages_new(LENGTH, 1), GDMABUF_READ_ONLY);
	const uint32_t begin = GDMABUF_IMPORTER_BEGIN_CPU_ACCESS,
		       end = GDMABUF_IMPORTER_END_CPU_ACCESS;

	EXPECT_EQ(test_importer_attach(s.importer, s.e.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_TO_DEVICE),
		  0);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(importer_call(s.importer, begin, writes[i]), -EACCES);
		EXPECT_EQ(importer_call(s.importer, end, writes[i]), -EACCES);
	}
	EXPECT_EQ(importer_call(s.importer, begin, GDMABUF_IMPORTER_FROM_DEVICE), 0);
	EXPECT_EQ(importer_call(s.importer, end, GDMABUF_IMPORTER_FROM_DEVICE), 0);
	import_test_end(&s);
}

/* The first device of a DRM driver. */
static int drm_open(const char *driver)
{
	for (int i = 0; i < 16; i++) {
		char path[32], name[32] = "";
		struct drm_version version = { .name = name, .name_len = sizeof(name) - 1 };
		int fd;

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0 && !ioctl(fd, DRM_IOCTL_VERSION, &version) && !strcmp(name, driver))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	test_skip("no DRM device of %s", driver);
	return -1;
}

static unsigned char *drm_map(int drm, uint32_t handle)
{
	struct drm_mode_map_dumb map = { .handle = handle };

	/* The offset of an imported object is not told, but this is what the first one has. */
	if (ioctl(drm, DRM_IOCTL_MODE_MAP_DUMB, &map))
		map.offset = 1ULL << 32;
	return mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, drm, (off_t)map.offset);
}

static void drm_cannot_write(const char *driver)
{
	int file, drm = drm_open(driver);
	struct setup s = setup_read_only_file(&file);
	struct drm_prime_handle prime = { .fd = s.e.fd };
	unsigned char *view = MAP_FAILED;

	if (!ioctl(drm, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime))
		view = drm_map(drm, prime.handle);
	else
		printf("# %s does not import it: %s\n", driver, strerror(errno));
	if (view != MAP_FAILED)
		view[0] = 0x66;
	file_is_as_it_was(file);
	EXPECT(view == MAP_FAILED);
	close(drm);
	import_test_end(&s);
}

TEST(read_only_vgem, "A read-only export that vgem imports cannot be written by way of vgem.")
{
	drm_cannot_write("vgem");
}

TEST(read_only_virtio_gpu,
     "A read-only export that virtio-gpu imports cannot be written by way of virtio-gpu.")
{
	drm_cannot_write("virtio_gpu");
}

static void kernel_mapping(struct setup *s)
{
	static unsigned char got[LENGTH];

	EXPECT_EQ(import_attach(s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_VMAP, 0), 0);
	EXPECT_EQ(importer_access(s->importer, GDMABUF_IMPORTER_VREAD, 0, got, LENGTH), 0);
	EXPECT_EQ(pattern_mismatches(got, LENGTH), 0);
	memset(got, 0x1f, PAGE);
	EXPECT_EQ(importer_access(s->importer, GDMABUF_IMPORTER_VWRITE, 2 * GPU_PAGE, got, PAGE),
		  0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_VUNMAP, 0), 0);
}

TEST(vmap_gpu,
     "The kernel's own mapping of GPU memory is an address, by which it is read and written.")
{
	struct setup s = import_test_begin(0, 0);

	kernel_mapping(&s);
	mockgpu_read(s.gpu, s.va, bytes, LENGTH);
	EXPECT_EQ(bytes[2 * GPU_PAGE], 0x1f);
	import_test_end(&s);
}

TEST(vmap_gpu_scattered,
     "So it is of memory that is scattered in the BAR, where the kernel has vmap_pfn().")
{
	struct setup s = import_test_begin(MOCK_SCATTER, 0);
	int err;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	err = importer_call(s.importer, GDMABUF_IMPORTER_VMAP, 0);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_DETACH, 0), 0);
	if (err == -EINVAL) {
		import_test_end(&s);
		test_skip("this kernel has no CONFIG_VMAP_PFN");
	}
	kernel_mapping(&s);
	import_test_end(&s);
}

TEST(vmap_host, "The kernel's own mapping of host memory is read and written.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct setup s = setup_host(p, 0);

	kernel_mapping(&s);
	EXPECT_EQ(p[2 * GPU_PAGE], 0x1f);
	import_test_end(&s);
}

static void vmap_refused(struct setup *s, uint32_t mode, uint32_t flags)
{
	EXPECT_EQ(import_attach(s, mode, flags), 0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_VMAP, 0), -EINVAL);
	import_test_end(s);
}

TEST(vmap_read_only, "EINVAL, and no warning, for the kernel's mapping of what is read-only.")
{
	struct setup s = setup_host(pages_new(LENGTH, 1), GDMABUF_READ_ONLY);

	vmap_refused(&s, GDMABUF_IMPORTER_STATIC, 0);
}

TEST(vmap_huge, "EINVAL, and no warning, for the kernel's mapping of more than 256 MiB.")
{
	enum { HUGE = 257 << 20 };
	struct setup s = { .gpu = mockgpu_open(),
			   .ctx = gdm_open(),
			   .importer = test_importer_open() };
	unsigned char *p = pages_new(HUGE, 0);

	EXPECT_EQ(gdm_export_host(s.ctx, p, HUGE, 0, &s.e), 0);
	vmap_refused(&s, GDMABUF_IMPORTER_STATIC, 0);
	munmap(p, HUGE);
}

TEST(importer_keeps,
     "An importer keeps the pages when every descriptor is closed, and the owner's memory is gone.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct setup s = setup_host(p, 0);
	static unsigned char got[LENGTH];

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_VMAP, 0), 0);
	close(s.e.fd);
	munmap(p, LENGTH);
	EXPECT_EQ(importer_access(s.importer, GDMABUF_IMPORTER_VREAD, 0, got, LENGTH), 0);
	EXPECT_EQ(pattern_mismatches(got, LENGTH), 0);
	s.e.fd = -1;
	import_test_end(&s);
}

TEST(cpu_access, "Brackets of the CPU's access work with a device mapped, in both kinds.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct setup a = import_test_begin(0, 0), b = setup_host(p, 0);
	struct gdmabuf_importer_map map;

	for (int i = 0; i < 2; i++) {
		struct setup *s = i ? &a : &b;

		EXPECT_EQ(import_attach(s, GDMABUF_IMPORTER_STATIC, 0), 0);
		EXPECT_EQ(test_importer_map(s->importer, &map), 0);
		EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_BEGIN_CPU_ACCESS, 0), 0);
		EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_END_CPU_ACCESS, 0), 0);
		close(s->importer);
		s->importer = -1;
	}
	import_test_end(&a);
	import_test_end(&b);
}

/* Of the first such device, as GDMABUF_DIAG wants it; ends the test if there is none. */
static uint32_t pci_address(const char *vendor, const char *device, char *path, size_t size)
{
	unsigned int domain, bus, slot, function;
	char line[128], want[32], *at = NULL;
	FILE *f;

	snprintf(line, sizeof(line), "grep -lx %s /sys/bus/pci/devices/*/device", device);
	snprintf(want, sizeof(want), "%s\n", vendor);
	f = popen(line, "r");
	while (!at && fgets(path, (int)size, f)) {
		char *end = strstr(path, "/device\n");
		FILE *v;

		strcpy(end, "/vendor");
		v = fopen(path, "r");
		if (v && fgets(line, sizeof(line), v) && !strcmp(line, want))
			at = path + strlen("/sys/bus/pci/devices/");
		if (v)
			fclose(v);
		*end = '\0';
	}
	pclose(f);
	if (!at)
		test_skip("no PCI device %s:%s", vendor, device);
	EXPECT_EQ(sscanf(at, "%x:%x:%x.%x", &domain, &bus, &slot, &function), 4);
	return domain << 16 | bus << 8 | slot << 3 | function;
}

static int is_translated(const char *device)
{
	char path[512], type[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/iommu_group/type", device);
	f = fopen(path, "r");
	if (f && !fgets(type, sizeof(type), f))
		type[0] = '\0';
	if (f)
		fclose(f);
	return !strncmp(type, "DMA", 3);
}

TEST(diag_pair,
     "GDMABUF_DIAG tells of an IOMMU where one translates, and of no bridge where none is.")
{
	struct gdmabuf_diag d = { .size = sizeof(d) };
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	int ctx = gdm_open();
	char path[256];

	d.gpu = pci_address("0x1af4", "0x1110", path, sizeof(path));
	d.peer = pci_address("0x1234", "0x11e8", path, sizeof(path));
	EXPECT_EQ(gdm_call(ctx, GDMABUF_CAPS, &caps), 0);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_DIAG, &d), 0);
	EXPECT_EQ(!!(d.out_flags & GDMABUF_DIAG_IOMMU), is_translated(path));
	EXPECT_EQ(!!(d.out_flags & GDMABUF_DIAG_DISTANCE), !!(caps.out_caps & GDMABUF_CAP_P2PDMA));
	EXPECT_EQ(d.out_flags & (GDMABUF_DIAG_SAME_BRIDGE | GDMABUF_DIAG_ACS), 0);
	close(ctx);
}

static int sysfs_write(const char *device, const char *file, const char *word)
{
	char path[512];
	int fd, err;

	snprintf(path, sizeof(path), "%s/%s", device, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	err = fd < 0 || write(fd, word, strlen(word)) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

static int has_driver(const char *device)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/driver", device);
	return !access(path, F_OK);
}

TEST(diag_without_driver, "Of a device without driver the IOMMU is told, and its domain, which "
			  "others may free, not read.")
{
	struct gdmabuf_diag d = { .size = sizeof(d) };
	int ctx = gdm_open();
	char path[256];

	d.gpu = pci_address("0x1af4", "0x1110", path, sizeof(path));
	d.peer = pci_address("0x1234", "0x11e8", path, sizeof(path));
	if (!is_translated(path))
		test_skip("no IOMMU translates for the device");
	if (has_driver(path))
		test_skip("the device has a driver");
	EXPECT_EQ(sysfs_write(path, "iommu_group/type", "identity"), 0);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_DIAG, &d), 0);
	EXPECT(d.out_flags & GDMABUF_DIAG_IOMMU);
	EXPECT_EQ(sysfs_write(path, "iommu_group/type", "DMA"), 0);
	close(ctx);
}
