/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins of host memory when mappings change, when the kernel reclaims memory, and when processes
 * end.
 */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

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

TEST(host_stale_munmap, "After munmap() the pin is stale at once, and the dma-buf keeps the pages.")
{
	host_expect_stale(change_munmap);
}

TEST(host_stale_dontneed, "After MADV_DONTNEED the pin is stale, and the dma-buf keeps the pages.")
{
	host_expect_stale(change_dontneed);
}

TEST(host_stale_mremap, "After mremap() the pin is stale, and the dma-buf keeps the pages.")
{
	host_expect_stale(change_mremap);
}

TEST(host_stale_map_over,
     "After a MAP_FIXED mapping over the range the pin is stale, and the dma-buf keeps the pages.")
{
	host_expect_stale(change_map_over);
}

TEST(host_stale_not_shared, "An export of a remapped address pins the new pages.")
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
     "After fork() the parent's pin stays valid, and writes of the child do not reach the dma-buf.")
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
     "A child inherits a mapping of a dma-buf of host memory, and shares the pages with the "
     "parent.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.e.fd, LENGTH, PROT_READ | PROT_WRITE);
	/* A single run: the kernel maps such a dma-buf by another path. */
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

TEST(host_keep, "With GDMABUF_KEEP the pin outlives the dma-bufs until GDMABUF_DROP.")
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

TEST(host_budget, "A lower budget evicts idle pins, least recently exported first.")
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
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, NULL), 0); /* now the first is the most recent */
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
     "If the kernel reclaims memory, idle pins are evicted, and pins in use stay.")
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
	/* The pin is idle now, and still kept. */
	close(used.fd);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 1);
	host_reclaim();
	EVENTUALLY(gdm_stats(ctx).out_host_pins == 0);
	close(ctx);
	munmap(p, 2 * LENGTH);
}

/* The number after @name, in the first line of the file that begins with @name. */
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
     "A dma-buf keeps the pages, and nothing else, of an exporting process that has ended.")
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

TEST(host_outlives_context, "The dma-buf outlives the context and the owner's mapping.")
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
