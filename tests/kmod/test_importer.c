/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices as importers: DMA by QEMU's edu (a PCI device), scatterlists, and the kinds of importers.
 * A static importer may attach GPU memory, and may not map it for a device.
 */
#include "importer_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int has_edu(const struct setup *s)
{
	struct gdmabuf_importer_attach arg = { .fd = s->fd };

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
	struct setup s = import_test_begin(0);
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
	struct setup s = import_test_begin(MOCK_SCATTER);
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

TEST(dma_after_free, "DMA after cudaFree reaches the old memory, and never a later allocation.")
{
	struct setup s = import_test_begin(0);
	struct gdmabuf_importer_map map;
	unsigned char got[PIECE];
	uint64_t other;

	need_edu(&s);
	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_PINNED, GDMABUF_IMPORTER_PEER2PEER), 0);
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
	struct setup s = import_test_begin(0);
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_DYNAMIC, GDMABUF_IMPORTER_PEER2PEER), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	EXPECT_EQ(map.out_orig_nents, 0);
	EXPECT_EQ(map.out_length, LENGTH);
	import_test_end(&s);
}

TEST(sg_one_range,
     "A run in the BAR is one DMA range, in segments of whole pages up to the device's limit.")
{
	struct setup s = import_test_begin(0);
	struct gdmabuf_importer_attach arg = {
		.fd = s.fd,
		.mode = GDMABUF_IMPORTER_DYNAMIC,
		.flags = GDMABUF_IMPORTER_PEER2PEER,
		.max_segment = 3 * PAGE + 100,
	};
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
	const struct gdmabuf_importer_attach arg = {
		.mode = GDMABUF_IMPORTER_DYNAMIC,
		.flags = GDMABUF_IMPORTER_PEER2PEER,
		.max_segment = PAGE - 1,
	};

	EXPECT_EQ(attach_and_map(s, arg), -EINVAL);
	import_test_end(s);
}

TEST(sg_tiny_segments, "A device with segments smaller than a page cannot map GPU memory: EINVAL.")
{
	struct setup s = import_test_begin(0);

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
	unsigned char *p;

	if (!booted_with("swiotlb=force"))
		test_skip("no bounce buffers: boot with swiotlb=force");
	gdm_need_huge_pages();
	p = huge_pages_new(1, 1);
	if (!p)
		test_skip("no huge pages");
	EXPECT_EQ(gdm_export_host(s.ctx, p, HUGE_PAGE, 0, &s.fd), 0);
	arg.fd = s.fd;
	EXPECT_EQ(ioctl(s.importer, GDMABUF_IMPORTER_ATTACH, &arg), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	EXPECT_EQ(map.out_length, HUGE_PAGE);
	EXPECT(map.out_largest < HUGE_PAGE);
	EXPECT_EQ(map.out_largest % PAGE, 0);
	import_test_end(&s);
}

/* ---- kinds of importers ---- */

TEST(attach_not_pci, "A device outside a PCI bus imports GPU memory.")
{
	struct setup s = import_test_begin(0);
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_DYNAMIC,
				GDMABUF_IMPORTER_PEER2PEER | GDMABUF_IMPORTER_PLATFORM_DEVICE),
		  0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	import_test_end(&s);
}

struct importer_mode {
	const char *name;
	uint32_t mode, flags;
};

static const struct importer_mode modes_that_need_pages[] = {
	{ "pinned", GDMABUF_IMPORTER_PINNED, 0 },
	{ "dynamic", GDMABUF_IMPORTER_DYNAMIC, 0 },
};

TEST_EACH(
	attach_needs_pages, struct importer_mode, modes_that_need_pages,
	"A dynamic importer that needs struct pages attaches host memory, and gets EOPNOTSUPP for "
	"GPU memory.")
{
	struct setup s = import_test_begin(0), host = setup_host(pages_new(LENGTH, 1), 0);

	EXPECT_EQ(import_attach(&s, row->mode, row->flags), -EOPNOTSUPP);
	EXPECT_EQ(import_attach(&host, row->mode, row->flags), 0);
	import_test_end(&s);
	import_test_end(&host);
}

TEST(attach_static,
     "A static importer attaches GPU memory for the kernel's mapping, and gets EOPNOTSUPP when it "
     "maps for the device.")
{
	struct setup s = import_test_begin(0);
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_VMAP, 0), 0);
	EXPECT_EQ(test_importer_map(s.importer, &map), -EOPNOTSUPP);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_VUNMAP, 0), 0);
	import_test_end(&s);
}

static const struct importer_mode modes_that_map[] = {
	{ "static", GDMABUF_IMPORTER_STATIC, 0 },
	{ "pinned", GDMABUF_IMPORTER_PINNED, GDMABUF_IMPORTER_PEER2PEER },
	{ "dynamic", GDMABUF_IMPORTER_DYNAMIC, GDMABUF_IMPORTER_PEER2PEER },
};

enum { IMPORTS = 10, IMPORTED = 16 << 20 };

/* Before 6.16 the kernel maps for a dynamic importer in the attach, and unmaps in the detach. */
static void import_once(const struct setup *s, const struct importer_mode *row, int maps)
{
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(s, row->mode, row->flags | GDMABUF_IMPORTER_PLATFORM_DEVICE), 0);
	for (int i = 0; maps && i < 2; i++) {
		EXPECT_EQ(test_importer_map(s->importer, &map), 0);
		EXPECT_EQ(map.out_length, IMPORTED);
		EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_UNMAP, 0), 0);
	}
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_DETACH, 0), 0);
}

/* On the debug kernel, kmemleak finds what is left. */
static void import_often(const struct setup *s, const struct importer_mode *row, int maps)
{
	for (int i = 0; i < IMPORTS; i++)
		import_once(s, row, maps);
}

TEST_EACH(attach_again_gpu, struct importer_mode, modes_that_map,
	  "GPU memory is imported again after an import, with a mapping and without.")
{
	struct setup s = import_test_begin(0);
	uint64_t va = mockgpu_alloc(s.gpu, IMPORTED, MOCK_SCATTER);

	close(s.fd);
	EXPECT_EQ(gdm_export_gpu(s.ctx, va, IMPORTED, 0, &s.fd), 0);
	import_often(&s, row, 0);
	if (row->mode != GDMABUF_IMPORTER_STATIC)
		import_often(&s, row, 1);
	close(s.fd);
	mockgpu_free(s.gpu, va);
	s.fd = -1;
	import_test_end(&s);
}

TEST_EACH(attach_again_host, struct importer_mode, modes_that_map,
	  "Host memory is imported again after an import, with a mapping and without.")
{
	unsigned char *p = pages_new(IMPORTED, 0);
	struct setup s = setup_host(p, 0);

	close(s.fd);
	madvise(p, IMPORTED, MADV_NOHUGEPAGE);
	EXPECT_EQ(gdm_export_host(s.ctx, p, IMPORTED, 0, &s.fd), 0);
	import_often(&s, row, 0);
	import_often(&s, row, 1);
	import_test_end(&s);
	munmap(p, IMPORTED);
}
