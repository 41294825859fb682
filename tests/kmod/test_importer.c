/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices as importers: DMA by QEMU's edu (a PCI device), scatterlists, and refused kinds of
 * importers.
 */
#include "importer_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

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

TEST(dma_gpu, "A PCI device reads and writes GPU memory by DMA, byte for byte.")
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

TEST(dma_scattered, "DMA across runs that are apart in the BAR transfers the right bytes.")
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
     "HOLD: DMA after cudaFree reaches the old memory, and never a later allocation.")
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

TEST(sg_no_pages,
     "The scatterlist of GPU memory covers all bytes with DMA addresses, and has no struct pages.")
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
     "A run in the BAR is one DMA range, in segments of whole pages up to the device's limit.")
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

static void map_tiny_segments(struct setup *s)
{
	const struct gdmabuf_importer_attach arg = { .max_segment = PAGE - 1 };

	EXPECT_EQ(attach_and_map(s, arg), -EINVAL);
	import_test_end(s);
}

TEST(sg_tiny_segments, "A device with segments smaller than a page cannot map GPU memory: EINVAL.")
{
	struct setup s = import_test_begin(0, 0);

	map_tiny_segments(&s);
}

TEST(sg_tiny_segments_host,
     "A device with segments smaller than a page cannot map host memory: EINVAL.")
{
	struct setup s = setup_host(pages_new(LENGTH, 1), 0);

	map_tiny_segments(&s);
}

TEST(sg_host,
     "The scatterlist of host memory covers all bytes with DMA addresses, and has struct pages.")
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

/* Whether the kernel's command line has @word. */
static int booted_with(const char *word)
{
	FILE *f = fopen("/proc/cmdline", "r");
	char line[4096] = "";

	EXPECT(f && fgets(line, sizeof(line), f));
	fclose(f);
	return !!strstr(line, word);
}

TEST(sg_bounced,
     "A device with bounce buffers maps memory in a row that is longer than a bounce buffer.")
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

TEST(attach_not_pci, "A device outside a PCI bus imports GPU memory.")
{
	struct setup s = import_test_begin(0, 0);
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, GDMABUF_IMPORTER_PLATFORM_DEVICE), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	import_test_end(&s);
}

TEST(attach_needs_pages,
     "A dynamic importer that needs struct pages gets host memory, and EOPNOTSUPP for GPU memory.")
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
     "A static importer whose driver is not in static_importers gets EOPNOTSUPP for GPU memory.")
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
     "A static importer without driver, bus and class gets host memory, and EOPNOTSUPP for GPU "
     "memory.")
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

struct revocable_importer {
	const char *name;
	uint32_t mode, flags;
};

static const struct revocable_importer revocable_importers[] = {
	{ "static", GDMABUF_IMPORTER_STATIC, 0 },
	{ "pinned", GDMABUF_IMPORTER_PINNED, GDMABUF_IMPORTER_PEER2PEER },
	{ "dynamic", GDMABUF_IMPORTER_DYNAMIC, GDMABUF_IMPORTER_PEER2PEER },
};

TEST_EACH(attach_revocable, struct revocable_importer, revocable_importers,
	  "No importer attaches to a revocable export, before or after the memory is freed: "
	  "EOPNOTSUPP.")
{
	struct setup s = import_test_begin(0, GDMABUF_REVOCABLE);

	EXPECT_EQ(import_attach(&s, row->mode, row->flags), -EOPNOTSUPP);
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(import_attach(&s, row->mode, row->flags), -EOPNOTSUPP);
	import_test_end(&s);
}

enum { MANY = 400 };

/* Returns the sync file of a fence.  Closing @importer signals the fence. */
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

	clock_gettime(CLOCK_MONOTONIC, &t); /* time: figures */
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

/*
 * Returns the microseconds that cudaFree takes with MANY dma-bufs on the memory.  With a @fence,
 * each dma-buf has the fence; -1 is no fence.
 */
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

	/*
	 * The fence is signalled only below: if cudaFree waited for the fence, the test would hang.
	 */
	unfenced = free_of_many_takes(-1);
	fenced = free_of_many_takes(fence);
	printf("# a free with %d dma-bufs on the memory took %ld us, with a fence on each %ld us\n",
	       MANY, unfenced, fenced);
	close(fence);
	close(importer);
	import_test_end(&s);
}
