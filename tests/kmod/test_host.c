/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory as dma-bufs. */
#include "gdm.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/dma-buf.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 64 * PAGE };

/* Stale pins of tests before go by and by. */
static long long total_settled(const char *counter)
{
	long long now = gdm_read_total(counter), before;

	do {
		before = now;
		usleep(100000);
		now = gdm_read_total(counter);
	} while (now != before);
	return now;
}

/* A range that is exported. */
struct setup {
	int ctx;
	unsigned char *p;
	struct gdm_export e;
};

static struct setup host_test_begin(int fill, uint32_t flags)
{
	struct setup s = { .ctx = gdm_open(), .p = pages_new(LENGTH, fill) };

	EXPECT_EQ(gdm_export_host(s.ctx, s.p, LENGTH, flags, &s.e), 0);
	return s;
}

static void host_test_end(struct setup *s)
{
	close(s->e.fd);
	close(s->ctx);
	munmap(s->p, LENGTH);
}

TEST(host_private_pages,
     "A private range is exported: what the dma-buf shows is what the range holds.")
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
     "A range that was never touched is exported, and stays shared when it is written.")
{
	unsigned char *p = pages_new(LENGTH, 0), *view;
	struct gdm_export e;
	int ctx = gdm_open();

	EXPECT_EQ(p[0], 0); /* the zero page, of all processes */
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &e), 0);
	pattern_fill(p, LENGTH);
	view = dmabuf_map(e.fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	EXPECT(gdm_is_valid(gdm_status(ctx), &e));
	close(e.fd);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_many_mappings, "A range may consist of several mappings, of files and of none.")
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

TEST(host_empty, "EINVAL for a length of 0.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	EXPECT_EQ(gdm_export_host(ctx, p, 0, 0, NULL), -EINVAL);
	close(ctx);
}

TEST(host_unaligned, "EINVAL for a range that is not of whole pages.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	EXPECT_EQ(gdm_export_host(ctx, p + 1, PAGE, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE + 1, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 0);
	close(ctx);
}

TEST(host_overflow, "EINVAL for a range that wraps around.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	EXPECT_EQ(gdm_export_host(ctx, p, -(size_t)PAGE, 0, NULL), -EINVAL);
	EXPECT_EQ(gdm_export_host(ctx, (void *)-(uintptr_t)PAGE, 2 * PAGE, 0, NULL), -EINVAL);
	close(ctx);
}

TEST(host_too_long, "EINVAL for more pages than an int counts.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	EXPECT_EQ(gdm_export_host(ctx, p, (size_t)PAGE << 31, 0, NULL), -EINVAL);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_not_memory, "EFAULT for kernel addresses, non-canonical ones and page 0.")
{
	int ctx = gdm_open();

	EXPECT_EQ(gdm_export_host(ctx, (void *)0xffff888000000000, PAGE, 0, NULL), -EFAULT);
	EXPECT_EQ(gdm_export_host(ctx, (void *)0x1000000000000000, PAGE, 0, NULL), -EFAULT);
	EXPECT_EQ(gdm_export_host(ctx, NULL, PAGE, 0, NULL), -EFAULT);
	close(ctx);
}

/* As the kernel counts them, of all. */
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

TEST(host_hole, "EFAULT for a range with a hole; neither pages stay pinned nor its slot in use.")
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

TEST(host_no_rights, "EFAULT for a mapping that cannot be read.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	mprotect(p, LENGTH, PROT_NONE);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, NULL), -EFAULT);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_device_memory, "EFAULT for the mapping of another dma-buf: its pages cannot be pinned.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.e.fd, LENGTH, PROT_READ | PROT_WRITE);

	EXPECT_EQ(gdm_export_host(s.ctx, view, LENGTH, 0, NULL), -EFAULT);
	host_test_end(&s);
}

TEST(host_read_only_mapping, "EACCES for a read-only mapping without GDMABUF_READ_ONLY.")
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
     "EACCES for a bracket of writes on a read-only export; a bracket of reads works.")
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

/* A file that is written back, mapped by @prot and shared.  tmpfs would not do: its pages are pinned. */
static unsigned char *file_map(int prot, char *path)
{
	int file = mkstemp(path);
	unsigned char *p;

	EXPECT(file >= 0);
	for (int i = 0; i < LENGTH / PAGE; i++)
		EXPECT_EQ(pwrite(file, &(char){ (char)i }, 1, (off_t)i * PAGE), 1);
	EXPECT_EQ(ftruncate(file, LENGTH), 0);
	p = mmap(NULL, LENGTH, prot, MAP_SHARED, file, 0);
	close(file);
	if (p == MAP_FAILED) {
		unlink(path);
		test_skip("this file system has no shared mappings");
	}
	return p;
}

static void export_file(int prot)
{
	char path[] = "gdmabuf-XXXXXX";
	unsigned char *p = file_map(prot, path), *view;
	int ctx = gdm_open(), err;
	struct gdm_export e;

	err = gdm_export_host(ctx, p, LENGTH, GDMABUF_READ_ONLY, &e);
	unlink(path);
	EXPECT_EQ(err, 0);
	view = dmabuf_map(e.fd, LENGTH, PROT_READ);
	for (int i = 0; i < LENGTH / PAGE; i++)
		EXPECT_EQ(view[i * PAGE], i);
	if (prot & PROT_WRITE) {
		p[1] = 0x5a;
		EXPECT_EQ(view[1], 0x5a);
	}
	munmap(view, LENGTH);
	close(e.fd);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_read_only_file, "A read-only export of a file's mapping shows the file.")
{
	export_file(PROT_READ);
}

TEST(host_read_only_writable_file,
     "A read-only export of a shared mapping of a file that can be written shows what is written.")
{
	export_file(PROT_READ | PROT_WRITE);
}

TEST(host_writable_file,
     "EFAULT for a shared mapping of a file that is written back, unless read-only: its "
     "file system would not hear of the writes.")
{
	char path[] = "gdmabuf-XXXXXX";
	unsigned char *p = file_map(PROT_READ | PROT_WRITE, path);
	int ctx = gdm_open(), err;

	err = gdm_export_host(ctx, p, LENGTH, 0, NULL);
	unlink(path);
	EXPECT_EQ(err, -EFAULT);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 0);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_write_only_mapping,
     "A mapping that can only be written is exported, and exported again from the same pin.")
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

TEST(host_read_only_follows, "A read-only export of writable memory shows what is written later.")
{
	struct setup s = host_test_begin(0, GDMABUF_READ_ONLY);
	unsigned char *view;

	pattern_fill(s.p, LENGTH);
	view = dmabuf_map(s.e.fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	host_test_end(&s);
}

TEST(host_hit, "A range within a pin takes it: nothing is pinned again, and both show the same.")
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

TEST(host_beyond_pin,
     "A range that begins in a pin or ends in it, but is not within it, is another.")
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
     "A pin is not shared with an export that the mapping does not permit any more.")
{
	struct setup s = host_test_begin(1, 0);

	mprotect(s.p, LENGTH, PROT_READ);
	EXPECT_EQ(gdm_export_host(s.ctx, s.p, LENGTH, 0, NULL), -EACCES);
	/* The pages are the same. */
	EXPECT(gdm_is_valid(gdm_status(s.ctx), &s.e));
	host_test_end(&s);
}

static void host_expect_stale(void (*change)(unsigned char *p))
{
	int ctx = gdm_open();
	const volatile uint32_t *status = gdm_status(ctx);
	unsigned char *p = pages_new(LENGTH, 1), *view;
	struct gdm_export e;

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_KEEP, &e), 0);
	view = dmabuf_map(e.fd, LENGTH, PROT_READ);
	EXPECT(gdm_is_valid(status, &e));
	change(p);
	EXPECT(!gdm_is_valid(status, &e));
	EXPECT_EQ(gdm_query(ctx, e.fd).out_state, GDMABUF_STALE);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(e.fd);
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 0);
	close(ctx);
}

static void change_munmap(unsigned char *p)
{
	munmap(p + PAGE, PAGE);
}

static void change_dontneed(unsigned char *p)
{
	EXPECT_EQ(madvise(p + PAGE, PAGE, MADV_DONTNEED), 0);
	EXPECT_EQ(p[PAGE], 0);
}

static void change_mremap(unsigned char *p)
{
	EXPECT(mremap(p, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, pages_new(LENGTH, 0)) !=
	       MAP_FAILED);
}

static void change_map_over(unsigned char *p)
{
	EXPECT(mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	       MAP_FAILED);
}

TEST(host_stale_munmap, "munmap makes the pin stale at once; the dma-buf keeps the pages.")
{
	host_expect_stale(change_munmap);
}

TEST(host_stale_dontneed, "MADV_DONTNEED makes the pin stale; the dma-buf keeps the pages.")
{
	host_expect_stale(change_dontneed);
}

TEST(host_stale_mremap, "mremap makes the pin stale; the dma-buf keeps the pages.")
{
	host_expect_stale(change_mremap);
}

TEST(host_stale_map_over,
     "Another mapping in the place makes the pin stale; the dma-buf keeps the pages.")
{
	host_expect_stale(change_map_over);
}

TEST(host_stale_not_shared, "An export of an address that was remapped pins the new pages.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1), *view;
	struct gdm_export old, new;

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_KEEP, &old), 0);
	change_dontneed(p);
	p[PAGE] = 99;
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &new), 0);
	EXPECT(new.slot != old.slot || new.generation != old.generation);
	view = dmabuf_map(new.fd, LENGTH, PROT_READ);
	EXPECT_EQ(view[PAGE], 99);
	close(old.fd);
	close(new.fd);
	close(ctx);
	munmap(p, LENGTH);
}

static void child_writes(void *arg)
{
	*(unsigned char *)arg = 55;
}

TEST(host_fork,
     "fork() and the child's writes change nothing for the parent, and do not make it stale.")
{
	struct setup s = host_test_begin(1, 0);
	const volatile uint32_t *status = gdm_status(s.ctx);
	unsigned char *view = dmabuf_map(s.e.fd, LENGTH, PROT_READ | PROT_WRITE);

	EXPECT_EQ(in_child(child_writes, s.p), 0);
	s.p[7] = 11;
	EXPECT_EQ(view[7], 11);
	EXPECT_EQ(view[0], pattern_at(0));
	EXPECT(gdm_is_valid(status, &s.e));
	munmap(view, LENGTH);
	host_test_end(&s);
}

static void child_uses_view(void *arg)
{
	unsigned char *view = arg;

	if (pattern_mismatches(view, LENGTH))
		_exit(1);
	view[PAGE] = 99;
}

TEST(host_fork_mapping,
     "A child has its parent's mapping of a dma-buf of host memory: both write the same pages.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.e.fd, LENGTH, PROT_READ | PROT_WRITE);
	/* One run, which the kernel treats apart. */
	unsigned char *page = dmabuf_map(s.e.fd, PAGE, PROT_READ | PROT_WRITE);

	EXPECT(view && page);
	EXPECT_EQ(in_child(child_writes, page), 0);
	EXPECT_EQ(s.p[0], 55);
	page[0] = pattern_at(0);
	EXPECT_EQ(in_child(child_uses_view, view), 0);
	EXPECT_EQ(view[PAGE], 99);
	EXPECT_EQ(s.p[PAGE], 99);
	munmap(page, PAGE);
	munmap(view, LENGTH);
	host_test_end(&s);
}

TEST(host_keep, "With GDMABUF_KEEP the pin outlives its dma-bufs, until it is dropped.")
{
	int ctx = gdm_open();
	const volatile uint32_t *status = gdm_status(ctx);
	unsigned char *p = pages_new(LENGTH, 1);
	struct gdm_export e, again;

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_KEEP, &e), 0);
	EXPECT_EQ(gdm_drop(ctx, &e), -EBUSY);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_KEEP, &again), 0);
	close(e.fd);
	close(again.fd);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 1);
	EXPECT(gdm_is_valid(status, &e));
	EXPECT_EQ(gdm_drop(ctx, &e), 0);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 0);
	EXPECT(!gdm_is_valid(status, &e));
	EXPECT_EQ(gdm_drop(ctx, &e), -ENOENT);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_budget,
     "What is kept and idle is given up beyond the budget, least recently exported first.")
{
	int ctx = gdm_open();
	const volatile uint32_t *status = gdm_status(ctx);
	unsigned char *p = pages_new(4 * PAGE, 1);
	struct gdm_export e[4];
	uint64_t used;

	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(gdm_export_host(ctx, p + i * PAGE, PAGE, GDMABUF_KEEP, &e[i]), 0);
		close(e[i].fd);
	}
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, NULL), 0); /* the first is now the latest */
	EXPECT_EQ(gdm_budget(ctx, GDMABUF_KIND_HOST, 2 * PAGE, &used), 0);
	EXPECT_EQ(used, 2 * PAGE);
	EXPECT(gdm_is_valid(status, &e[0]) && gdm_is_valid(status, &e[3]));
	EXPECT(!gdm_is_valid(status, &e[1]) && !gdm_is_valid(status, &e[2]));
	EXPECT_EQ(gdm_stats(ctx).out_evictions, 2);
	EXPECT_EQ(gdm_export_host(ctx, p + PAGE, PAGE, GDMABUF_KEEP, NULL), 0);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 2);
	close(ctx);
	munmap(p, 4 * PAGE);
}

static void host_reclaim(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	EXPECT(fd >= 0);
	EXPECT_EQ(write(fd, "2", 1), 1);
	close(fd);
}

TEST(host_keep_reclaimed,
     "Pins that are kept and idle are given up when the kernel wants memory; those in use stay.")
{
	int ctx = gdm_open();
	const volatile uint32_t *status = gdm_status(ctx);
	unsigned char *p = pages_new(2 * LENGTH, 1);
	struct gdm_export idle, used;

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_KEEP, &idle), 0);
	EXPECT_EQ(gdm_export_host(ctx, p + LENGTH, LENGTH, GDMABUF_KEEP, &used), 0);
	close(idle.fd);
	host_reclaim();
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 1);
	EXPECT_EQ(gdm_stats(ctx).out_evictions, 1);
	EXPECT(!gdm_is_valid(status, &idle));
	EXPECT(gdm_is_valid(status, &used));
	/* It is kept still. */
	close(used.fd);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 1);
	host_reclaim();
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 0);
	close(ctx);
	munmap(p, 2 * LENGTH);
}

/* A child of user 1000, whose limit is @limit, exports @length and passes it on. */
struct pinner {
	int sockets[2];
	size_t length, limit;
};

static void pin_and_pass(void *arg)
{
	const struct pinner *pinner = arg;
	unsigned char *p = pages_new(pinner->length, 1);
	int ctx = gdm_open(), err;
	struct gdm_export e;

	become_user(pinner->limit);
	err = gdm_export_host(ctx, p, pinner->length, 0, &e);
	if (err)
		_exit(err == -ENOMEM ? 1 : 2);
	send_fd(pinner->sockets[0], e.fd);
}

static struct pinner pinner_new(size_t length, size_t limit)
{
	struct pinner pinner = { .length = length, .limit = limit };

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pinner.sockets), 0);
	return pinner;
}

static void pinner_free(struct pinner *pinner)
{
	close(pinner->sockets[0]);
	close(pinner->sockets[1]);
}

/* The number in the first line of a file that begins with @name. */
static long long number_in(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	long long value = -1;
	char line[256];

	if (!f)
		test_skip("%s: %s", path, strerror(errno));
	while (value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			EXPECT_EQ(sscanf(line + strlen(name), "%lld", &value), 1);
	fclose(f);
	EXPECT(value >= 0);
	return value;
}

TEST(host_outlives_process,
     "A dma-buf that was passed on keeps nothing of the process that made it but the pages.")
{
	enum { CHILDREN = 100 };
	long long mms = number_in("/proc/slabinfo", "mm_struct ");
	long long kib = number_in("/proc/meminfo", "SUnreclaim:");
	struct pinner pinner = pinner_new(PAGE, CHILDREN * PAGE);
	int fds[CHILDREN];

	if (!access("/sys/kernel/debug/kmemleak", F_OK))
		test_skip("the debug kernel keeps for a while what is freed");
	for (int i = 0; i < CHILDREN; i++) {
		EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
		fds[i] = receive_fd(pinner.sockets[1]);
	}
	EVENTUALLY(number_in("/proc/slabinfo", "mm_struct ") < mms + CHILDREN / 2);
	EVENTUALLY(number_in("/proc/meminfo", "SUnreclaim:") < kib + CHILDREN * 24);
	for (int i = 0; i < CHILDREN; i++)
		close(fds[i]);
	pinner_free(&pinner);
}

TEST(host_outlives_context, "The dma-buf outlives the context, and the owner's mapping.")
{
	long long before = total_settled("host-bytes");
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1), *view;
	struct gdm_export e;

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_KEEP, &e), 0);
	EXPECT_EQ(gdm_read_total("host-bytes"), before + LENGTH);
	close(ctx);
	munmap(p, LENGTH);
	view = dmabuf_map(e.fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(e.fd);
	EVENTUALLY(gdm_read_total("host-bytes") == before);
}

static void export_beyond_limit(void *arg)
{
	(void)arg;
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);
	struct gdm_export e;

	become_user(LENGTH / 2);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL) != -ENOMEM)
		_exit(1);
	if (gdm_export_host(ctx, p, LENGTH / 2, 0, &e))
		_exit(2);
	if (gdm_export_host(ctx, p + LENGTH / 2, PAGE, 0, NULL) != -ENOMEM)
		_exit(3);
	close(e.fd);
	if (gdm_export_host(ctx, p + LENGTH / 2, LENGTH / 2, GDMABUF_KEEP, NULL))
		_exit(4);
	/* What is kept and idle makes room. */
	if (gdm_export_host(ctx, p, LENGTH / 2, 0, NULL))
		_exit(5);
	if (gdm_stats(ctx).out_retries != 1)
		_exit(6);
}

TEST(host_memlock,
     "ENOMEM beyond RLIMIT_MEMLOCK, after idle pins made room; it is given back on close.")
{
	EXPECT_EQ(in_child(export_beyond_limit, NULL), 0);
}

/* As far as CAP_IPC_LOCK goes, which can be raised again. */
static void raise_ipc_lock(int raised)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		_exit(98);
	data[0].effective &= ~(1U << CAP_IPC_LOCK);
	data[0].effective |= (unsigned int)raised << CAP_IPC_LOCK;
	if (syscall(SYS_capset, &header, data))
		_exit(98);
}

static void lower_ipc_lock(void *arg)
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct rlimit limit = { LENGTH / 2, LENGTH / 2 };
	int ctx = gdm_open();

	(void)arg;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || gdm_export_host(ctx, p, LENGTH, 0, NULL))
		_exit(1);
	raise_ipc_lock(0);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL) != -ENOMEM)
		_exit(2);
	raise_ipc_lock(1);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL))
		_exit(3);
}

TEST(host_memlock_capability,
     "RLIMIT_MEMLOCK limits a process while it does not have CAP_IPC_LOCK, "
     "which it had when it opened the device.")
{
	EXPECT_EQ(in_child(lower_ipc_lock, NULL), 0);
}

TEST(host_memlock_of_exited,
     "RLIMIT_MEMLOCK counts what processes of the user exported, passed on and left behind.")
{
	struct pinner pinner = pinner_new(LENGTH, 2 * LENGTH);
	int a, b;

	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	a = receive_fd(pinner.sockets[1]);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	b = receive_fd(pinner.sockets[1]);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 1);
	close(a);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	close(b);
	close(receive_fd(pinner.sockets[1]));
	pinner_free(&pinner);
}

TEST(host_memlock_mapped, "RLIMIT_MEMLOCK counts pages whose dma-buf is closed, but mapped, and "
			  "gives them back after it.")
{
	struct pinner pinner = pinner_new(LENGTH, LENGTH);
	unsigned char *view;
	int fd;

	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	fd = receive_fd(pinner.sockets[1]);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	EXPECT(view);
	close(fd);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 1);
	munmap(view, LENGTH);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	close(receive_fd(pinner.sockets[1]));
	pinner_free(&pinner);
}

/* Exports, and executes what keeps the dma-buf until the pipe is closed. */
static void pin_and_exec(void *arg)
{
	const struct pinner *pinner = arg;
	unsigned char *p = pages_new(pinner->length, 1);
	int ctx = gdm_open();
	struct gdm_export e;

	become_user(pinner->limit);
	if (gdm_export_host(ctx, p, pinner->length, 0, &e) || fcntl(e.fd, F_SETFD, 0) ||
	    dup2(pinner->sockets[0], 0) || dup2(pinner->sockets[0], 1) != 1)
		_exit(1);
	execlp("cat", "cat", "-", NULL);
	_exit(2);
}

TEST(host_memlock_exec, "RLIMIT_MEMLOCK counts what a process exported before it executed another "
			"program, as long as that has it.")
{
	struct pinner pinner = pinner_new(LENGTH, LENGTH);
	pid_t child = fork();
	int status;
	char byte;

	if (!child)
		pin_and_exec(&pinner);
	close(pinner.sockets[0]);
	EXPECT_EQ(write(pinner.sockets[1], "x", 1), 1);
	EXPECT_EQ(read(pinner.sockets[1], &byte, 1), 1); /* cat runs */
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 1);
	EXPECT_EQ(shutdown(pinner.sockets[1], SHUT_WR), 0);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	close(pinner.sockets[1]);
	pinner = pinner_new(LENGTH, LENGTH);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	pinner_free(&pinner);
}

/* Without capabilities, but able to get them back. */
static int host_become(uid_t uid)
{
	return setresuid((uid_t)-1, 0, (uid_t)-1) || setresuid(uid, uid, 0);
}

static void pin_as_two_users(void *arg)
{
	unsigned char *p = pages_new(3 * LENGTH, 1);
	struct rlimit limit = { LENGTH, LENGTH };
	struct gdm_export a, b, c;
	int ctx = gdm_open();

	(void)arg;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || host_become(1000) ||
	    gdm_export_host(ctx, p, LENGTH, 0, &a))
		_exit(1);
	if (gdm_export_host(ctx, p + LENGTH, LENGTH, 0, NULL) != -ENOMEM)
		_exit(2);
	if (host_become(1001) || gdm_export_host(ctx, p + LENGTH, LENGTH, 0, &b))
		_exit(3);
	close(a.fd);
	if (gdm_export_host(ctx, p + 2 * LENGTH, LENGTH, 0, NULL) != -ENOMEM)
		_exit(4);
	if (host_become(1000) || gdm_export_host(ctx, p + 2 * LENGTH, LENGTH, 0, &c))
		_exit(5);
}

TEST(host_memlock_setuid,
     "RLIMIT_MEMLOCK counts an export as the user's who made it, and gives it back "
     "to that user.")
{
	EXPECT_EQ(in_child(pin_as_two_users, NULL), 0);
}

/*
 * A process of user 1000 with threads that remap a range of its own: for one of them or another the
 * kernel is in the midst of that, always.  Then more of its pins become stale than the kernel runs
 * works at once.
 */
enum { REMAPPERS = 16, REMAPPED_PINS = 1200 };
static const size_t REMAPPED = (size_t)16 << 30;

struct remapper {
	pid_t pid;
	int sockets[2];
	atomic_ulong *remapped; /* how often; shared */
	unsigned char *range;
};

/* Busy threads share two processors with who waits. */
#define WITHIN_A_MINUTE(condition)                          \
	({                                                  \
		time_t end_ = host_clock() + 60;            \
		while (!(condition) && host_clock() < end_) \
			usleep(10000);                      \
		condition;                                  \
	})

static time_t host_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void *remap_for_ever(void *arg)
{
	const struct remapper *remapper = arg;

	for (;;) {
		madvise(remapper->range, REMAPPED, MADV_DONTNEED);
		atomic_fetch_add(remapper->remapped, 1);
	}
	return NULL;
}

static int goes_on_remapping(const struct remapper *remapper, unsigned long times)
{
	unsigned long wanted = atomic_load(remapper->remapped) + times;

	return WITHIN_A_MINUTE(atomic_load(remapper->remapped) >= wanted);
}

/* Sparse, so that a remapping has many page tables to go through, and little memory. */
static unsigned char *sparse_pages_new(void)
{
	unsigned char *range = mmap(NULL, REMAPPED, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (range == MAP_FAILED || madvise(range, REMAPPED, MADV_NOHUGEPAGE))
		_exit(1);
	for (size_t at = 0; at < REMAPPED; at += HUGE_PAGE)
		range[at] = 1;
	return range;
}

static void start_remapping(struct remapper *remapper)
{
	pthread_t thread;

	remapper->range = sparse_pages_new();
	for (int i = 0; i < REMAPPERS; i++)
		if (pthread_create(&thread, NULL, remap_for_ever, remapper))
			_exit(2);
	if (!goes_on_remapping(remapper, REMAPPERS))
		_exit(3);
}

static void remapper_run(struct remapper *remapper)
{
	unsigned char *passed = pages_new(PAGE, 1), *kept = pages_new(REMAPPED_PINS * PAGE, 0);
	int ctx = gdm_open();
	struct gdm_export e;

	become_user((REMAPPED_PINS + 1) * PAGE);
	for (size_t i = 0; i < REMAPPED_PINS; i++)
		if (gdm_export_host(ctx, kept + i * PAGE, PAGE, GDMABUF_KEEP, NULL))
			_exit(4);
	if (gdm_export_host(ctx, passed, PAGE, 0, &e))
		_exit(5);
	start_remapping(remapper);
	madvise(kept, REMAPPED_PINS * PAGE, MADV_DONTNEED);
	send_fd(remapper->sockets[0], e.fd);
	close(e.fd);
	for (;;)
		pause();
}

/* Returns a dma-buf that it has passed on. */
static int remapper_start(struct remapper *remapper)
{
	remapper->remapped =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT((void *)remapper->remapped != MAP_FAILED);
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, remapper->sockets), 0);
	remapper->pid = fork();
	if (!remapper->pid)
		remapper_run(remapper);
	EXPECT(remapper->pid > 0);
	close(remapper->sockets[0]);
	return receive_fd(remapper->sockets[1]);
}

static void remapper_stop(struct remapper *remapper)
{
	EXPECT_EQ(kill(remapper->pid, SIGKILL), 0);
	EXPECT_EQ(waitpid(remapper->pid, NULL, 0), remapper->pid);
	close(remapper->sockets[1]);
	munmap(remapper->remapped, PAGE);
}

/* It stays to be waited for. */
static int has_ended(pid_t child)
{
	siginfo_t info = { 0 };

	EXPECT_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid == child;
}

TEST(host_close_while_owner_remaps,
     "A close of a dma-buf ends, however its owner's threads remap memory of theirs.")
{
	struct remapper remapper;
	int fd = remapper_start(&remapper), wake[2], ended, goes_on;
	pid_t closer;
	char byte;

	EXPECT_EQ(pipe(wake), 0);
	closer = fork();
	if (!closer)
		_exit(read(wake[0], &byte, 1) != 1 || close(fd));
	close(fd);
	EXPECT_EQ(write(wake[1], "", 1), 1); /* the descriptor is the closer's alone */
	ended = WITHIN_A_MINUTE(has_ended(closer));
	goes_on = goes_on_remapping(&remapper, 1);
	remapper_stop(&remapper);
	EXPECT_EQ(waitpid(closer, NULL, 0), closer);
	close(wake[0]);
	close(wake[1]);
	EXPECT(goes_on);
	EXPECT(ended);
}

TEST(host_forget_while_other_remaps,
     "A kept pin goes when its range is unmapped, however another process's threads remap theirs.")
{
	unsigned char *p = pages_new(PAGE, 1);
	int ctx = gdm_open(), fd, gone, goes_on;
	struct remapper remapper;

	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, GDMABUF_KEEP, NULL), 0);
	fd = remapper_start(&remapper);
	munmap(p, PAGE);
	gone = WITHIN_A_MINUTE(!gdm_stats(ctx).out_host_pins);
	goes_on = goes_on_remapping(&remapper, 1);
	remapper_stop(&remapper);
	close(fd);
	close(ctx);
	EXPECT(goes_on);
	EXPECT(gone);
}

static void exceed_own_limit(void *arg)
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	(void)arg;
	become_user(PAGE);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL) != -ENOMEM)
		_exit(1);
}

TEST(host_memlock_is_own, "Another process's limit takes nothing from what this one keeps.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);
	struct gdm_export e;

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, GDMABUF_KEEP, &e), 0);
	close(e.fd);
	EXPECT_EQ(in_child(exceed_own_limit, NULL), 0);
	EXPECT(gdm_is_valid(gdm_status(ctx), &e));
	EXPECT_EQ(gdm_stats(ctx).out_evictions, 0);
	close(ctx);
	munmap(p, LENGTH);
}

enum { NO_HUGE_PAGES = 77 };

static void in_child_with_huge_pages(void (*body)(void *arg))
{
	int status = in_child(body, NULL);

	if (status == NO_HUGE_PAGES)
		test_skip("no huge pages");
	EXPECT_EQ(status, 0);
}

/* A page of each of @n huge pages of the caller, in a row. */
static unsigned char *pages_of_huge(size_t n)
{
	unsigned char *huge = huge_pages_new(n, 0), *p = pages_new(n * PAGE, 0);

	if (!huge)
		_exit(NO_HUGE_PAGES);
	for (size_t i = 0; i < n; i++)
		if (mremap(huge + i * HUGE_PAGE + 5 * PAGE, PAGE, PAGE,
			   MREMAP_MAYMOVE | MREMAP_FIXED, p + i * PAGE) == MAP_FAILED)
			_exit(98);
	return p;
}

static void export_of_huge(void *arg)
{
	int ctx = gdm_open();
	unsigned char *p = pages_of_huge(5);
	struct gdm_export e;

	(void)arg;
	become_user(4 * HUGE_PAGE);
	if (gdm_export_host(ctx, p, 5 * PAGE, 0, NULL) != -ENOMEM)
		_exit(1);
	/* The failure charged nothing. */
	if (gdm_export_host(ctx, p, 4 * PAGE, 0, &e))
		_exit(2);
	if (gdm_export_host(ctx, p + 4 * PAGE, PAGE, 0, NULL) != -ENOMEM)
		_exit(3);
	close(e.fd);
	if (gdm_export_host(ctx, p + PAGE, 4 * PAGE, 0, NULL))
		_exit(4);
}

TEST(host_memlock_huge, "RLIMIT_MEMLOCK counts all of a huge page of which a part is exported.")
{
	in_child_with_huge_pages(export_of_huge);
}

static void export_huge_often(void *arg)
{
	int ctx = gdm_open(), second = gdm_open();
	unsigned char *huge = huge_pages_new(1, 0), *other = pages_new(PAGE, 1);
	struct gdm_export e[16];

	(void)arg;
	if (!huge)
		_exit(NO_HUGE_PAGES);
	become_user(HUGE_PAGE);
	for (size_t i = 0; i < 16; i++)
		if (gdm_export_host(i % 2 ? ctx : second, huge + i * 9 * PAGE, 2 * PAGE, 0, &e[i]))
			_exit(1);
	for (int i = 0; i < 16; i++) {
		if (gdm_export_host(ctx, other, PAGE, 0, NULL) != -ENOMEM)
			_exit(2);
		close(e[i].fd);
	}
	if (gdm_export_host(ctx, other, PAGE, 0, &e[0]))
		_exit(3);
	if (gdm_export_host(ctx, huge, PAGE, 0, NULL) != -ENOMEM)
		_exit(4);
	close(e[0].fd);
	if (gdm_export_host(ctx, huge, HUGE_PAGE, 0, NULL))
		_exit(5);
}

TEST(host_memlock_huge_once, "RLIMIT_MEMLOCK counts a huge page once, however many exports have "
			     "parts of it, until the last is gone.")
{
	in_child_with_huge_pages(export_huge_often);
}

static void export_scattered(void *arg)
{
	int ctx = gdm_open();
	unsigned char *huge = huge_pages_new(1, 0), *p = pages_new(9 * PAGE, 1);

	(void)arg;
	if (!huge)
		_exit(NO_HUGE_PAGES);
	for (int i = 0; i < 9; i += 2)
		if (mremap(huge + i * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			   p + i * PAGE) == MAP_FAILED)
			_exit(98);
	become_user(HUGE_PAGE + 4 * PAGE);
	if (gdm_export_host(ctx, p, 9 * PAGE, 0, NULL))
		_exit(1);
}

TEST(host_memlock_huge_scattered,
     "RLIMIT_MEMLOCK counts a huge page once whose pages lie between others in the range.")
{
	in_child_with_huge_pages(export_scattered);
}

enum { IDLE = 16 };

static void keep_pages(int ctx, unsigned char *p)
{
	struct gdm_export e;

	for (size_t i = 0; i < IDLE; i++) {
		if (gdm_export_host(ctx, p + i * PAGE, PAGE, GDMABUF_KEEP, &e))
			_exit(97);
		close(e.fd);
	}
}

static void exceed_limit(void *arg)
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH + PAGE, 1);

	(void)arg;
	become_user(LENGTH);
	keep_pages(ctx, p);
	if (gdm_export_host(ctx, p, LENGTH + PAGE, 0, NULL) != -ENOMEM)
		_exit(1);
	if (gdm_export_host(ctx, (void *)0x10000000, LENGTH + PAGE, 0, NULL) != -ENOMEM)
		_exit(2);
	if (gdm_stats(ctx).out_evictions)
		_exit(3);
}

TEST(host_evicts_not_in_vain, "An export beyond RLIMIT_MEMLOCK drops nothing that is kept.")
{
	EXPECT_EQ(in_child(exceed_limit, NULL), 0);
}

static void exceed_what_is_idle(void *arg)
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1), *q = pages_new(LENGTH, 1);
	struct gdm_export used;

	(void)arg;
	become_user(LENGTH);
	if (gdm_export_host(ctx, q, PAGE, 0, &used))
		_exit(1);
	keep_pages(ctx, p);
	/* With the page in use it is one too much. */
	if (gdm_export_host(ctx, q, LENGTH, 0, NULL) != -ENOMEM)
		_exit(2);
	if (gdm_stats(ctx).out_evictions)
		_exit(3);
	if (gdm_export_host(ctx, q, LENGTH - PAGE, 0, NULL))
		_exit(4);
	if (gdm_stats(ctx).out_evictions != IDLE)
		_exit(5);
}

TEST(host_evicts_what_suffices,
     "Idle pins are given up for RLIMIT_MEMLOCK only if they are enough for the export.")
{
	EXPECT_EQ(in_child(exceed_what_is_idle, NULL), 0);
}

static void make_room_elsewhere(void *arg)
{
	int a = gdm_open(), b = gdm_open();
	unsigned char *p = pages_new(LENGTH, 1);

	(void)arg;
	become_user(LENGTH);
	keep_pages(a, p);
	/* The least recent go, and no more than are needed. */
	if (gdm_export_host(b, p, LENGTH - (IDLE - 3) * PAGE, 0, NULL))
		_exit(1);
	if (gdm_stats(a).out_evictions != 3 || gdm_stats(a).out_host_pins != IDLE - 3)
		_exit(2);
	if (gdm_export_host(b, p, LENGTH, 0, NULL))
		_exit(3);
	if (gdm_stats(a).out_host_pins)
		_exit(4);
}

TEST(host_evicts_other_context,
     "Idle pins of the user's other contexts make room where RLIMIT_MEMLOCK is reached.")
{
	EXPECT_EQ(in_child(make_room_elsewhere, NULL), 0);
}

static void evict_shared_huge(void *arg)
{
	int ctx = gdm_open();
	unsigned char *huge = huge_pages_new(2, 0);

	(void)arg;
	if (!huge)
		_exit(NO_HUGE_PAGES);
	become_user(HUGE_PAGE);
	keep_pages(ctx, huge);
	if (gdm_stats(ctx).out_host_pins != IDLE)
		_exit(1);
	if (gdm_export_host(ctx, huge + HUGE_PAGE, PAGE, 0, NULL))
		_exit(2);
}

TEST(host_evicts_shared_huge,
     "Idle pins that share a huge page are all given up if the huge page is what is in the way.")
{
	in_child_with_huge_pages(evict_shared_huge);
}

/* What giving up the others' huge page frees is nothing, as long as a dma-buf has a page of it. */
static void evict_beside_huge_in_use(void *arg)
{
	int ctx = gdm_open();
	unsigned char *huge = huge_pages_new(1, 0), *p = pages_new(HUGE_PAGE + LENGTH, 1);
	struct gdm_export used;

	(void)arg;
	if (!huge)
		_exit(NO_HUGE_PAGES);
	become_user(2 * HUGE_PAGE);
	if (gdm_export_host(ctx, huge + 100 * PAGE, PAGE, 0, &used))
		_exit(1);
	keep_pages(ctx, huge);
	if (gdm_export_host(ctx, p, HUGE_PAGE + PAGE, 0, NULL) != -ENOMEM)
		_exit(2);
	if (gdm_stats(ctx).out_evictions)
		_exit(3);
	keep_pages(ctx, p + HUGE_PAGE);
	if (gdm_export_host(ctx, p, HUGE_PAGE, 0, NULL))
		_exit(4);
	if (gdm_stats(ctx).out_evictions != IDLE || gdm_stats(ctx).out_host_pins != IDLE + 1)
		_exit(5);
}

TEST(host_evicts_not_beside_huge_in_use, "Idle pins that share a huge page with one in use are not "
					 "given up, as that would free nothing.")
{
	in_child_with_huge_pages(evict_beside_huge_in_use);
}

static void other_process(void *arg)
{
	int ctx = *(int *)arg;
	unsigned char *p = pages_new(PAGE, 1);
	struct gdmabuf_caps caps = { .size = sizeof(caps) };

	if (gdm_export_host(ctx, p, PAGE, 0, NULL) != -EACCES)
		_exit(1);
	if (gdm_call(ctx, GDMABUF_CAPS, &caps) != -EACCES)
		_exit(2);
	if (mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ctx, 0) != MAP_FAILED || errno != EACCES)
		_exit(3);
}

TEST(host_context_inherited, "EACCES from every call on a context that was inherited by fork().")
{
	int ctx = gdm_open();

	EXPECT_EQ(in_child(other_process, &ctx), 0);
	close(ctx);
}

TEST(host_context_same_memory, "EACCES for another process that has the owner's memory: vfork().")
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	int ctx = gdm_open(), status;
	pid_t pid = vfork();

	if (!pid)
		_exit(gdm_call(ctx, GDMABUF_CAPS, &caps) == -EACCES ? 0 : 1);
	EXPECT(pid > 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	close(ctx);
}

static void receive_and_check(void *arg)
{
	int *sockets = arg;
	unsigned char *view;
	int fd = receive_fd(sockets[1]), ctx = gdm_open();
	struct gdmabuf_query q = gdm_query(ctx, fd);

	if (q.out_kind != GDMABUF_KIND_HOST || q.out_length != LENGTH || q.out_address ||
	    q.out_slot)
		_exit(1);
	view = dmabuf_map(fd, LENGTH, PROT_READ | PROT_WRITE);
	if (!view || pattern_mismatches(view, LENGTH))
		_exit(2);
	view[0] = 33;
}

TEST(host_other_process,
     "A dma-buf passed by SCM_RIGHTS works there, and its query tells no address.")
{
	int ctx = gdm_open(), sockets[2];
	unsigned char *p = pages_new(LENGTH, 1);
	struct gdm_export e;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &e), 0);
	send_fd(sockets[0], e.fd);
	EXPECT_EQ(in_child(receive_and_check, sockets), 0);
	EXPECT_EQ(p[0], 33);
	close(e.fd);
	close(ctx);
}

TEST(host_mmap_private, "A private mapping of a dma-buf is refused.")
{
	struct setup s = host_test_begin(1, 0);

	EXPECT(mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, s.e.fd, 0) == MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	/* The kernel itself refuses some of what is not contiguous. */
	EXPECT(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, s.e.fd, 0) == MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	host_test_end(&s);
}

TEST(host_mmap_part, "A part of a dma-buf is mapped by its offset; beyond the end it is refused.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, s.e.fd, 9 * PAGE);

	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(memcmp(view, s.p + 9 * PAGE, 2 * PAGE), 0);
	EXPECT(mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, s.e.fd, LENGTH - PAGE) == MAP_FAILED);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, s.e.fd, LONG_MAX & ~0xfffL) == MAP_FAILED);
	host_test_end(&s);
}

TEST(host_mapping_split,
     "A mapping that is split, moved and partly unmapped shows the right pages.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.e.fd, LENGTH, PROT_READ), *moved;

	munmap(view + 4 * PAGE, PAGE);
	moved = mremap(view + 8 * PAGE, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       pages_new(8 * PAGE, 0));
	EXPECT(moved != MAP_FAILED);
	EXPECT_EQ(memcmp(moved, s.p + 8 * PAGE, 8 * PAGE), 0);
	EXPECT_EQ(memcmp(view, s.p, 4 * PAGE), 0);
	EXPECT(mremap(moved, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	host_test_end(&s);
}

TEST(host_status_read_only, "The status page cannot be mapped or made writable.")
{
	int ctx = gdm_open();
	void *status = (void *)(uintptr_t)gdm_status(ctx);

	EXPECT(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ctx, 0) == MAP_FAILED);
	EXPECT_EQ(errno, EACCES);
	EXPECT_EQ(mprotect(status, PAGE, PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(errno, EACCES);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, ctx, 0) == MAP_FAILED);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ctx, 4 * PAGE) == MAP_FAILED);
	close(ctx);
}

TEST(host_generations, "A slot that is used again has another generation.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(PAGE, 1);
	struct gdm_export a, b;

	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &a), 0);
	close(a.fd);
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &b), 0);
	close(b.fd);
	EXPECT_EQ(a.slot, b.slot);
	EXPECT(a.generation != b.generation);
	close(ctx);
}

TEST(host_slots_idle, "Idle pins make room when every slot is in use.")
{
	int ctx = gdm_open(), n = 0, err = 0;
	unsigned char *p = pages_new((size_t)4200 * PAGE, 0);

	for (; n < 4200 && !err; n++)
		err = gdm_export_host(ctx, p + (size_t)n * PAGE, PAGE, GDMABUF_KEEP, NULL);
	EXPECT_EQ(err, 0);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 4096);
	EXPECT_EQ(gdm_stats(ctx).out_evictions, 4200 - 4096);
	close(ctx);
	munmap(p, (size_t)4200 * PAGE);
}

TEST(host_slots_exhausted, "ENOSPC when every slot is in use by a dma-buf.")
{
	enum { SLOTS = 4096 };
	static struct gdm_export e[SLOTS];
	struct rlimit limit = { SLOTS + 100, SLOTS + 100 };
	unsigned char *p = pages_new((size_t)(SLOTS + 1) * PAGE, 0);
	int ctx = gdm_open();

	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (size_t i = 0; i < SLOTS; i++)
		EXPECT_EQ(gdm_export_host(ctx, p + i * PAGE, PAGE, 0, &e[i]), 0);
	EXPECT_EQ(gdm_export_host(ctx, p + (size_t)SLOTS * PAGE, PAGE, 0, NULL), -ENOSPC);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, SLOTS);
	close(e[7].fd);
	EXPECT_EQ(gdm_export_host(ctx, p + (size_t)SLOTS * PAGE, PAGE, 0, &e[7]), 0);
	EXPECT_EQ(e[7].slot, 7);
	for (size_t i = 0; i < SLOTS; i++)
		close(e[i].fd);
	close(ctx);
	munmap(p, (size_t)(SLOTS + 1) * PAGE);
}

/* Of processes, in debugfs. */
static int count_contexts(void)
{
	FILE *f = fopen("/sys/kernel/debug/gdmabuf/contexts", "r");
	char line[128];
	int n = 0;

	EXPECT(f);
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, "process ", 8);
	fclose(f);
	return n;
}

TEST(host_failed_context, "A context of which an export failed goes when it is closed.")
{
	int ctx = gdm_open(), before;

	total_settled("host-pins");
	before = count_contexts();
	EXPECT_EQ(gdm_export_host(ctx, NULL, PAGE, 0, NULL), -EFAULT);
	close(ctx);
	EXPECT_EQ(count_contexts(), before - 1);
}

static void export_for_ever(void *arg)
{
	enum { BIG = 128 << 20 };
	unsigned char *p = pages_new(BIG, 0);
	int ctx = gdm_open();

	memset(p, 1, BIG);
	EXPECT_EQ(write(*(int *)arg, "", 1), 1);
	for (;;)
		if (gdm_export_host(ctx, p, BIG, 0, NULL))
			_exit(1);
}

TEST(host_killed, "A process that is killed while it pins leaves nothing pinned.")
{
	long long before = total_settled("host-bytes");

	for (int i = 0; i < 8; i++) {
		int pipes[2], status;
		pid_t child;
		char byte;

		EXPECT_EQ(pipe(pipes), 0);
		child = fork();
		if (!child)
			export_for_ever(&pipes[1]);
		EXPECT_EQ(read(pipes[0], &byte, 1), 1);
		usleep(1000 + 1700 * (unsigned int)i);
		EXPECT_EQ(kill(child, SIGKILL), 0);
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		close(pipes[0]);
		close(pipes[1]);
	}
	EVENTUALLY(gdm_read_total("host-bytes") == before);
}

static int module_users(void)
{
	FILE *f = fopen("/sys/module/gdmabuf/refcnt", "r");
	int n = -1;

	EXPECT(f);
	EXPECT_EQ(fscanf(f, "%d", &n), 1);
	fclose(f);
	return n;
}

TEST(host_rmmod_busy,
     "A context, a dma-buf and a mapping each keep the module from being unloaded.")
{
	unsigned char *p = pages_new(PAGE, 1), *view;
	int before = module_users(), ctx = gdm_open();
	struct gdm_export e;

	EXPECT_EQ(module_users(), before + 1);
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &e), 0);
	close(ctx);
	EXPECT_EQ(module_users(), before + 1);
	view = dmabuf_map(e.fd, PAGE, PROT_READ);
	close(e.fd);
	EXPECT_EQ(module_users(), before + 1);
	munmap(view, PAGE);
	EVENTUALLY(module_users() == before);
}

TEST(host_generations_run_out, "A slot whose generations are used up is not used again.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(PAGE, 1);
	struct gdm_export e, last = { 0 };
	FILE *f = fopen("/sys/module/gdmabuf/parameters/first_generation", "r");
	unsigned int first = 0;

	EXPECT(f && fscanf(f, "%u", &first) == 1);
	fclose(f);
	if (first < 0xfffffff0)
		test_skip("needs the module's first_generation=4294967290");
	for (int i = 0; i < 20; i++) {
		EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &e), 0);
		close(e.fd);
		EXPECT(e.generation >= first);
		EXPECT(e.slot > last.slot || e.generation > last.generation);
		last = e;
	}
	EXPECT(last.slot > 0);
	close(ctx);
}
