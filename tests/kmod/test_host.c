/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of host memory: ranges, kinds of memory, and access rights. */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

TEST(host_private_pages, "The dma-buf of a private range shows the bytes of the range.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.fd, LENGTH, PROT_READ | PROT_WRITE);

	EXPECT(view);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	view[5] = 77;
	s.p[PAGE] = 78;
	EXPECT_EQ(s.p[5], 77);
	EXPECT_EQ(view[PAGE], 78);
	EXPECT_EQ(lseek(s.fd, 0, SEEK_END), LENGTH);
	munmap(view, LENGTH);
	host_test_end(&s);
}

TEST(host_untouched_pages,
     "An export of untouched pages shows the bytes that are written to the pages later.")
{
	unsigned char *p = pages_new(LENGTH, 0), *view;
	int ctx = gdm_open(), fd;

	EXPECT_EQ(p[0], 0); /* a read of an untouched page maps the shared zero page */
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &fd), 0);
	pattern_fill(p, LENGTH);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(fd);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_twice, "Two exports of one range are two pins, and both count until they are released.")
{
	struct setup s = host_test_begin(1, 0);
	long long bytes = gdm_read_total("host-bytes"), pinned = gdm_pinned_pages();
	unsigned char *view;
	int again;

	EXPECT_EQ(gdm_export_host(s.ctx, s.p, LENGTH, 0, &again), 0);
	EXPECT_EQ(gdm_read_total("host-bytes"), bytes + LENGTH);
	EXPECT_EQ(gdm_pinned_pages(), pinned + LENGTH / PAGE);
	close(s.fd);
	s.fd = again;
	EXPECT_EQ(gdm_read_total("host-bytes"), bytes);
	EXPECT_EQ(gdm_pinned_pages(), pinned);
	view = dmabuf_map(s.fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	host_test_end(&s);
}

TEST(host_many_mappings,
     "An exported range may span several mappings, of files and of anonymous memory.")
{
	unsigned char *p = pages_new(LENGTH, 0), *view;
	int ctx = gdm_open(), file = memfd_create("test", 0), fd;

	EXPECT_EQ(ftruncate(file, LENGTH), 0);
	EXPECT(mmap(p + 8 * PAGE, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
		    0) != MAP_FAILED);
	pattern_fill(p, LENGTH);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &fd), 0);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(fd);
	close(file);
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

TEST(host_hole, "An export of a range with a hole fails with EFAULT, and leaves no page pinned.")
{
	long long bytes = gdm_read_total("host-bytes"), pinned;
	unsigned char *p = pages_new(LENGTH, 1);
	int ctx = gdm_open();

	munmap(p + 8 * PAGE, PAGE);
	pinned = gdm_pinned_pages();
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, NULL), -EFAULT);
	EXPECT_EQ(gdm_pinned_pages(), pinned);
	EXPECT_EQ(gdm_read_total("host-bytes"), bytes);
	EXPECT_EQ(gdm_export_host(ctx, p, 8 * PAGE, 0, NULL), 0);
	EXPECT_EQ(gdm_pinned_pages(), pinned);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_no_rights, "An export of a mapping without access rights fails with EFAULT.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	mprotect(p + PAGE, PAGE, PROT_NONE);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, NULL), -EFAULT);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_READ_ONLY, NULL), -EFAULT);
	close(ctx);
	munmap(p, LENGTH);
}

/* ---- mappings that are no host memory ---- */

/* The first mapping of this process that /proc/self/maps calls @name. */
static void *host_find_mapping(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start = 0, at;
	char line[256];

	EXPECT(f);
	while (!start && fgets(line, sizeof(line), f))
		if (strstr(line, name) && sscanf(line, "%lx", &at) == 1)
			start = at;
	fclose(f);
	if (!start)
		test_skip("this process has no %s", name);
	return (void *)start;
}

static void *host_map_device(const char *path, int prot, off_t offset)
{
	int fd = open(path, (prot & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, prot, MAP_SHARED, fd, offset);

	if (p == MAP_FAILED)
		test_skip("%s: %s", path, strerror(errno));
	close(fd);
	return p;
}

static void *host_vvar(void)
{
	return host_find_mapping("[vvar]");
}

static void *host_vdso(void)
{
	return host_find_mapping("[vdso]");
}

static void *host_vsyscall(void)
{
	return (void *)0xffffffffff600000;
}

/* The BIOS, which the kernel lets root map. */
static void *host_physical(void)
{
	return host_map_device("/dev/mem", PROT_READ, 0xf0000);
}

static void *host_status_page(void)
{
	return (void *)(uintptr_t)gdm_status(gdm_open());
}

static void *host_mapped_dmabuf(uint32_t flags)
{
	struct setup s = host_test_begin(1, flags);
	void *view = dmabuf_map(s.fd, LENGTH, flags ? PROT_READ : PROT_READ | PROT_WRITE);

	EXPECT(view);
	host_test_end(&s);
	return view;
}

static void *host_dmabuf(void)
{
	return host_mapped_dmabuf(0);
}

static void *host_read_only_dmabuf(void)
{
	return host_mapped_dmabuf(GDMABUF_READ_ONLY);
}

static const struct host_special {
	const char *name;
	void *(*map)(void);
	int writable;
} host_specials[] = {
	{ "vvar", host_vvar, 0 },
	{ "vdso", host_vdso, 0 },
	{ "vsyscall", host_vsyscall, 0 },
	{ "physical", host_physical, 0 },
	{ "status_page", host_status_page, 0 },
	{ "dmabuf", host_dmabuf, 1 },
	{ "dmabuf_read_only", host_read_only_dmabuf, 0 },
};

TEST_EACH(host_special, struct host_special, host_specials,
	  "An export of a mapping of a device, or of the kernel's own pages, fails with EFAULT.")
{
	int ctx = gdm_open();
	void *p = row->map();
	long long pinned = gdm_pinned_pages();

	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, GDMABUF_READ_ONLY, NULL), -EFAULT);
	if (row->writable)
		EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, NULL), -EFAULT);
	EXPECT_EQ(gdm_pinned_pages(), pinned);
	close(ctx);
}

/* ---- rights ---- */

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

	EXPECT(!dmabuf_map(s.fd, LENGTH, PROT_READ | PROT_WRITE));
	EXPECT_EQ(errno, EACCES);
	view = dmabuf_map(s.fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	EXPECT_EQ(mprotect(view, LENGTH, PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(errno, EACCES);
	munmap(view, LENGTH);
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

	EXPECT_EQ(sync_cpu(s.fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW), -EACCES);
	EXPECT_EQ(sync_cpu(s.fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE), -EACCES);
	EXPECT_EQ(sync_cpu(s.fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW), -EACCES);
	EXPECT_EQ(sync_cpu(s.fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ), 0);
	EXPECT_EQ(sync_cpu(s.fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ), 0);
	host_test_end(&s);
}

TEST(host_read_only_reopened, "A read-only export cannot be opened again for writing.")
{
	struct setup s = host_test_begin(1, GDMABUF_READ_ONLY);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", s.fd);
	EXPECT_EQ(open(path, O_RDWR | O_CLOEXEC), -1);
	EXPECT_EQ(fcntl(s.fd, F_SETFL, O_RDWR), 0);
	EXPECT(!dmabuf_map(s.fd, LENGTH, PROT_READ | PROT_WRITE));
	host_test_end(&s);
}

TEST(host_write_only_mapping, "A write-only mapping is exported, also read-only.")
{
	unsigned char *p = pages_new(LENGTH, 1), *view;
	int ctx = gdm_open(), fd;

	EXPECT_EQ(mprotect(p, LENGTH, PROT_WRITE), 0);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, NULL), 0);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_READ_ONLY, &fd), 0);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(fd);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_read_only_follows, "A read-only export of writable memory shows later writes.")
{
	struct setup s = host_test_begin(0, GDMABUF_READ_ONLY);
	unsigned char *view;

	pattern_fill(s.p, LENGTH);
	view = dmabuf_map(s.fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	host_test_end(&s);
}
