/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of host memory: ranges, access rights, and pins that serve later exports. */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

TEST(host_private_pages, "The dma-buf of a private range shows the bytes of the range.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.e.fd, LENGTH, PROT_READ | PROT_WRITE);

	EXPECT(view);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	view[5] = 77;
	s.p[PAGE] = 78;
	EXPECT_EQ(s.p[5], 77);
	EXPECT_EQ(view[PAGE], 78);
	EXPECT_EQ(lseek(s.e.fd, 0, SEEK_END), LENGTH);
	munmap(view, LENGTH);
	host_test_end(&s);
}

TEST(host_untouched_pages,
     "An export of untouched pages shows the bytes that are written to the pages later.")
{
	unsigned char *p = pages_new(LENGTH, 0), *view;
	struct gdm_export e;
	int ctx = gdm_open();

	EXPECT_EQ(p[0], 0); /* a read of an untouched page maps the shared zero page */
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &e), 0);
	pattern_fill(p, LENGTH);
	view = dmabuf_map(e.fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	EXPECT(gdm_is_valid(gdm_status(ctx), &e));
	close(e.fd);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_many_mappings,
     "An exported range may span several mappings, of files and of anonymous memory.")
{
	unsigned char *p = pages_new(LENGTH, 0), *view;
	int ctx = gdm_open(), file = memfd_create("test", 0);
	struct gdm_export e;

	EXPECT_EQ(ftruncate(file, LENGTH), 0);
	EXPECT(mmap(p + 8 * PAGE, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
		    0) != MAP_FAILED);
	pattern_fill(p, LENGTH);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &e), 0);
	view = dmabuf_map(e.fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	close(e.fd);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_empty, "An export of length 0 fails with EINVAL.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	EXPECT_EQ(gdm_export_host(ctx, p, 0, 0, NULL), -EINVAL);
	close(ctx);
}

TEST(host_unaligned, "An export of a range that does not consist of whole pages fails with EINVAL.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	EXPECT_EQ(gdm_export_host(ctx, p + 1, PAGE, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE + 1, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 0);
	close(ctx);
}

TEST(host_overflow, "An export of a range that wraps around fails with EINVAL.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	EXPECT_EQ(gdm_export_host(ctx, p, -(size_t)PAGE, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_host(ctx, (void *)-(uintptr_t)PAGE, 2 * PAGE, 0, NULL), -EINVAL);
	close(ctx);
}

TEST(host_too_long, "An export of more pages than an int can count fails with EINVAL.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	EXPECT_EQ(gdm_export_host(ctx, p, (size_t)PAGE << 31, 0, NULL), -EINVAL);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_not_memory,
     "An export of a kernel address, a non-canonical address or page 0 fails with EFAULT.")
{
	int ctx = gdm_open();

	EXPECT_EQ(gdm_export_host(ctx, (void *)0xffff888000000000, PAGE, 0, NULL), -EFAULT);
	EXPECT_EQ(gdm_export_host(ctx, (void *)0x1000000000000000, PAGE, 0, NULL), -EFAULT);
	EXPECT_EQ(gdm_export_host(ctx, NULL, PAGE, 0, NULL), -EFAULT);
	close(ctx);
}

/* The number of pages that all drivers have pinned, from the kernel's counters. */
static long long pinned_pages(void)
{
	FILE *f = fopen("/proc/sys/vm/stat_refresh", "w");
	long long value, pinned = 0;
	char name[64];

	EXPECT(f);
	EXPECT(fputs("1", f) >= 0 && !fclose(f));
	f = fopen("/proc/vmstat", "r");
	EXPECT(f);
	while (fscanf(f, "%63s %lld", name, &value) == 2) {
		if (!strcmp(name, "nr_foll_pin_acquired"))
			pinned += value;
		if (!strcmp(name, "nr_foll_pin_released"))
			pinned -= value;
	}
	fclose(f);
	return pinned;
}

TEST(host_hole,
     "An export of a range with a hole fails with EFAULT, and leaves neither pages pinned nor a "
     "slot in use.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);
	struct gdm_export e;
	long long before;

	munmap(p + 8 * PAGE, PAGE);
	before = pinned_pages();
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, NULL), -EFAULT);
	EXPECT_EQ(pinned_pages(), before);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 0);
	EXPECT_EQ(gdm_stats(ctx).out_host_bytes, 0);
	EXPECT_EQ(gdm_export_host(ctx, p, 8 * PAGE, 0, &e), 0);
	EXPECT_EQ(e.slot, 0);
	close(e.fd);
	EXPECT_EQ(pinned_pages(), before);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_no_rights, "An export of a mapping without access rights fails with EFAULT.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	mprotect(p, LENGTH, PROT_NONE);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, NULL), -EFAULT);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_device_memory,
     "An export of a mapping of a dma-buf fails with EFAULT, as the pages cannot be pinned.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.e.fd, LENGTH, PROT_READ | PROT_WRITE);

	EXPECT_EQ(gdm_export_host(s.ctx, view, LENGTH, 0, NULL), -EFAULT);
	host_test_end(&s);
}

TEST(host_read_only_mapping,
     "An export of a read-only mapping needs GDMABUF_READ_ONLY, or fails with EACCES.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	mprotect(p + 4 * PAGE, PAGE, PROT_READ);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, NULL), -EACCES);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_READ_ONLY, NULL), 0);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_read_only_cpu, "A read-only export cannot be mapped for writing.")
{
	struct setup s = host_test_begin(1, GDMABUF_READ_ONLY);
	unsigned char *view;

	EXPECT(!dmabuf_map(s.e.fd, LENGTH, PROT_READ | PROT_WRITE));
	EXPECT_EQ(errno, EACCES);
	view = dmabuf_map(s.e.fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	EXPECT_EQ(mprotect(view, LENGTH, PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(errno, EACCES);
	host_test_end(&s);
}

static int sync_cpu(int fd, uint64_t flags)
{
	struct dma_buf_sync sync = { .flags = flags };

	return ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) ? -errno : 0;
}

TEST(host_read_only_sync,
     "DMA_BUF_IOCTL_SYNC for writing fails with EACCES on a read-only export, and works for "
     "reading.")
{
	struct setup s = host_test_begin(1, GDMABUF_READ_ONLY);

	EXPECT_EQ(sync_cpu(s.e.fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW), -EACCES);
	EXPECT_EQ(sync_cpu(s.e.fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE), -EACCES);
	EXPECT_EQ(sync_cpu(s.e.fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW), -EACCES);
	EXPECT_EQ(sync_cpu(s.e.fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ), 0);
	EXPECT_EQ(sync_cpu(s.e.fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ), 0);
	host_test_end(&s);
}

TEST(host_read_only_reopened, "A read-only export cannot be opened again for writing.")
{
	struct setup s = host_test_begin(1, GDMABUF_READ_ONLY);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", s.e.fd);
	EXPECT_EQ(open(path, O_RDWR | O_CLOEXEC), -1);
	EXPECT_EQ(fcntl(s.e.fd, F_SETFL, O_RDWR), 0);
	EXPECT(!dmabuf_map(s.e.fd, LENGTH, PROT_READ | PROT_WRITE));
	host_test_end(&s);
}

TEST(host_write_only_mapping,
     "A write-only mapping is exported, and a second export uses the first pin.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct gdm_export a, b, c;
	int ctx = gdm_open();

	EXPECT_EQ(mprotect(p, LENGTH, PROT_WRITE), 0);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &a), 0);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &b), 0);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 1);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_READ_ONLY, &c), 0);
	close(a.fd);
	close(b.fd);
	close(c.fd);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_read_only_follows, "A read-only export of writable memory shows later writes.")
{
	struct setup s = host_test_begin(0, GDMABUF_READ_ONLY);
	unsigned char *view;

	pattern_fill(s.p, LENGTH);
	view = dmabuf_map(s.e.fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	host_test_end(&s);
}

TEST(host_hit, "An export of a part of a pinned range uses the pin, and shows the right pages.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1), *view;
	struct gdm_export whole, part;
	struct gdmabuf_query q;

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &whole), 0);
	EXPECT_EQ(gdm_export_host(ctx, p + 3 * PAGE, 5 * PAGE, 0, &part), 0);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 1);
	EXPECT_EQ(gdm_stats(ctx).out_hits, 1);
	EXPECT_EQ(part.slot, whole.slot);
	q = gdm_query(ctx, part.fd);
	EXPECT_EQ(q.out_offset, 3 * PAGE);
	EXPECT_EQ(q.out_length, 5 * PAGE);
	EXPECT_EQ(q.out_pin_length, LENGTH);
	EXPECT_EQ(q.out_address, (uintptr_t)p + 3 * PAGE);
	view = dmabuf_map(part.fd, 5 * PAGE, PROT_READ);
	EXPECT_EQ(memcmp(view, p + 3 * PAGE, 5 * PAGE), 0);
	EXPECT(!dmabuf_map(part.fd, 6 * PAGE, PROT_READ));
	munmap(view, 5 * PAGE);
	close(whole.fd);
	close(part.fd);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 0);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_beyond_pin, "An export of a range that only overlaps a pinned range makes a new pin.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1), *view;
	struct gdm_export middle, head, tail;

	EXPECT_EQ(gdm_export_host(ctx, p + 8 * PAGE, 8 * PAGE, 0, &middle), 0);
	EXPECT_EQ(gdm_export_host(ctx, p + 7 * PAGE, 8 * PAGE, 0, &head), 0);
	EXPECT_EQ(gdm_export_host(ctx, p + 9 * PAGE, 8 * PAGE, 0, &tail), 0);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 3);
	view = dmabuf_map(tail.fd, 8 * PAGE, PROT_READ);
	EXPECT_EQ(memcmp(view, p + 9 * PAGE, 8 * PAGE), 0);
	munmap(view, 8 * PAGE);
	close(middle.fd);
	close(head.fd);
	close(tail.fd);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_hit_no_rights,
     "If the mapping has become read-only, a writable export fails with EACCES, although a pin "
     "exists.")
{
	struct setup s = host_test_begin(1, 0);

	mprotect(s.p, LENGTH, PROT_READ);
	EXPECT_EQ(gdm_export_host(s.ctx, s.p, LENGTH, 0, NULL), -EACCES);
	/* mprotect() leaves the pages in place, so the pin stays valid. */
	EXPECT(gdm_is_valid(gdm_status(s.ctx), &s.e));
	host_test_end(&s);
}
