/* SPDX-License-Identifier: Apache-2.0 */
/* Kept exports, by CLIMPORT_KEEP: reuse, limits, and the end of the memory. */
#include "export_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

LIB_TEST(limit, "If the limit is 0 or too small, no registration stays.")
{
	uintptr_t p = fake_cuda_alloc(0, 4 * PAGE);

	EXPECT_EQ(climport_set_limits(2, 0, UINT64_MAX), -EINVAL);
	EXPECT_EQ(climport_set_limits(CLIMPORT_HOST, 0, UINT64_MAX), 0);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 4 * PAGE);
	EXPECT_EQ(climport_set_limits(CLIMPORT_DEVICE, 4 * PAGE - 1, UINT64_MAX), 0);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	EXPECT_EQ(climport_set_limits(CLIMPORT_DEVICE, UINT64_MAX, UINT64_MAX), 0);
	EXPECT_EQ(climport_set_limits(CLIMPORT_HOST, UINT64_MAX, UINT64_MAX), 0);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 4 * PAGE);
	climport_invalidate(address_to_pointer(p), 1);
	fake_cuda_free(p);
}

static void keep_each(const uintptr_t *p, int count)
{
	for (int i = 0; i < count; i++)
		close(climport_export(p[i], PAGE, CLIMPORT_KEEP).fd);
}

LIB_TEST(limit_entries, "No more registrations stay than the limit of entries, the newest ones.")
{
	uintptr_t p[4];

	for (int i = 0; i < 4; i++)
		p[i] = fake_cuda_alloc(0, PAGE);
	keep_each(p, 4);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 4 * PAGE);
	EXPECT_EQ(climport_set_limits(CLIMPORT_DEVICE, UINT64_MAX, 2), 0);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 2 * PAGE);
	keep_each(p, 4);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 2 * PAGE);
	EXPECT_EQ(climport_set_limits(CLIMPORT_DEVICE, UINT64_MAX, 0), 0);
	keep_each(p, 4);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	EXPECT_EQ(climport_set_limits(CLIMPORT_DEVICE, UINT64_MAX, UINT64_MAX), 0);
	keep_each(p, 4);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 4 * PAGE);
	for (int i = 0; i < 4; i++) {
		climport_invalidate(address_to_pointer(p[i]), 1);
		fake_cuda_free(p[i]);
	}
}

LIB_TEST(drop_all, "climport_drop_all() gives up all registrations without users, and no others.")
{
	struct climport_registration held;
	uintptr_t p[3];

	for (int i = 0; i < 3; i++)
		p[i] = fake_cuda_alloc(0, PAGE);
	climport_drop_all();
	keep_each(p, 2);
	EXPECT_EQ(climport_register(address_to_pointer(p[2]), PAGE, 0, &held, sizeof(held)), 0);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 3 * PAGE);
	climport_drop_all();
	EXPECT_EQ(fixture_read_stats().bytes_pinned, PAGE);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 0);
	climport_unregister(&held);
	EXPECT_EQ(fixture_read_stats().bytes_idle, PAGE);
	keep_each(p, 3);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 3 * PAGE);
	climport_drop_all();
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	for (int i = 0; i < 3; i++)
		fake_cuda_free(p[i]);
}

LIB_TEST(not_kept, "Without CLIMPORT_KEEP each export is done by the driver.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	for (int i = 1; i < 4; i++) {
		struct climport_dmabuf d = climport_export(p, PAGE, 0);

		EXPECT_EQ(fake_cuda_calls(EXPORT), i);
		close(d.fd);
	}
	fake_cuda_free(p);
}

LIB_TEST(kept, "With CLIMPORT_KEEP the next export of a part needs no export by the driver.")
{
	uintptr_t p = fake_cuda_alloc(0, 4 * PAGE);
	struct climport_stats before = fixture_read_stats();
	struct climport_dmabuf a = climport_export(p, PAGE, CLIMPORT_KEEP), b;
	int calls;

	memory_set(p, 1);
	close(a.fd);
	calls = fake_cuda_calls(NULL);
	b = climport_export(p + 2 * PAGE + 8, 16, CLIMPORT_KEEP);
	EXPECT_EQ(fake_cuda_calls(NULL) - calls, 1); /* the buffer id */
	EXPECT_EQ(b.offset, 2 * PAGE + 8);
	EXPECT(fcntl(b.fd, F_GETFD) & FD_CLOEXEC);
	close(b.fd);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 1);
	EXPECT_EQ(fixture_read_stats().hits - before.hits, 1);
	EXPECT_EQ(fixture_read_stats().misses - before.misses, 1);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 4 * PAGE);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 4 * PAGE);
	climport_invalidate(address_to_pointer(p), 4 * PAGE);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	fake_cuda_free(p);
}

LIB_TEST(kept_within_page, "Kept memory that begins within a page is found again.")
{
	uintptr_t p = fake_cuda_alloc(0, 1000);

	close(climport_export(p, 1000, CLIMPORT_KEEP).fd);
	close(climport_export(p + 10, 500, CLIMPORT_KEEP).fd);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 1);
	climport_invalidate(address_to_pointer(p), 1);
	fake_cuda_free(p);
}

LIB_TEST(invalidated,
	 "climport_invalidate() of any part ends a kept export, and no kept export elsewhere.")
{
	uintptr_t p = fake_cuda_alloc(0, 4 * PAGE), q = fake_cuda_alloc(0, PAGE);
	int fds;

	climport_invalidate(address_to_pointer(p), 4 * PAGE);
	climport_invalidate(NULL, 0);
	fds = process_count_descriptors();
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	close(climport_export(q, PAGE, CLIMPORT_KEEP).fd);
	EXPECT_EQ(process_count_descriptors(), fds + 2);
	climport_invalidate(address_to_pointer(p + PAGE), 1);
	EXPECT_EQ(process_count_descriptors(), fds + 1);
	climport_invalidate(address_to_pointer(p), 4 * PAGE);
	climport_invalidate(address_to_pointer(p), 0);
	EXPECT_EQ(process_count_descriptors(), fds + 1);
	climport_invalidate(address_to_pointer(q), PAGE);
	fake_cuda_free(p);
	fake_cuda_free(q);
}

LIB_TEST(reused, "The next export of an address notices that the memory was freed.")
{
	uintptr_t p = fake_cuda_alloc(0, 2 * PAGE);
	uint64_t stale = fixture_read_stats().stale;
	struct climport_dmabuf d;

	memory_set(p, 1);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	fake_cuda_free(p);
	EXPECT_EQ(fake_cuda_alloc_at(0, 2 * PAGE, p), p);
	memory_set(p, 2);
	d = climport_export(p, PAGE, CLIMPORT_KEEP);
	EXPECT_EQ(dmabuf_read_byte(&d, 0), 2);
	EXPECT_EQ(fixture_read_stats().stale - stale, 1);
	close(d.fd);
	climport_invalidate(address_to_pointer(p), PAGE);
	fake_cuda_free(p);
}

LIB_TEST(freed, "Freed memory is not exported, and kept exports of the memory are dropped.")
{
	uintptr_t p = fake_cuda_alloc(0, 2 * PAGE);
	struct climport_dmabuf d = untouched;

	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	fake_cuda_free(p);
	fixture_skip_with_module();
	/* CUDA keeps the addresses mapped, for nobody: the kernel module would be asked. */
	EXPECT_EQ(climport_export_dmabuf(address_to_pointer(p), PAGE, CLIMPORT_KEEP, &d, sizeof(d)),
		  -ENXIO);
	EXPECT(is_untouched(&d));
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
}

static void keep_allocations(int count, int most)
{
	uintptr_t p[600];
	int fds = process_count_descriptors();
	uint64_t evictions = fixture_read_stats().evictions;

	for (int i = 0; i < count; i++) {
		p[i] = fake_cuda_alloc(0, PAGE);
		close(climport_export(p[i], PAGE, CLIMPORT_KEEP).fd);
	}
	EXPECT(process_count_descriptors() - fds <= most);
	EXPECT(process_count_descriptors() - fds > most / 2);
	EXPECT(fixture_read_stats().evictions - evictions >= (uint64_t)(count - most));
	for (int i = 0; i < count; i++) {
		climport_invalidate(address_to_pointer(p[i]), PAGE);
		fake_cuda_free(p[i]);
	}
}

LIB_TEST(many_kept, "Up to 512 allocations stay registered, each with a descriptor.")
{
	if (getenv("LIMITED"))
		keep_allocations(600, 512);
	else
		fixture_run_limited("many_kept", 4096);
}

LIB_TEST(few_kept, "At most an eighth of the process's descriptors are kept.")
{
	if (getenv("LIMITED"))
		keep_allocations(200, 32);
	else
		fixture_run_limited("few_kept", 256);
}

TEST_EACH(grown, struct flags_row, flag_rows,
	  "An export drops a kept export of freed memory that the range overlaps.")
{
	uint64_t stale;
	uintptr_t p;
	void *other;

	fixture_begin();
	stale = fixture_read_stats().stale;
	p = fake_cuda_alloc(0, 6 * PAGE);
	fake_cuda_free(p);
	/* Another thread may do this; if the addresses were free, the kernel would pick them. */
	other = mmap(NULL, 6 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(fake_cuda_alloc_at(0, 2 * PAGE, p), p);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	fake_cuda_free(p);
	EXPECT_EQ(fake_cuda_alloc_at(0, 6 * PAGE, p), p);
	close(climport_export(p, 6 * PAGE, row->flags).fd);
	EXPECT_EQ(fixture_read_stats().stale - stale, 1);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, row->flags ? 6 * PAGE : 0);
	munmap(other, 6 * PAGE);
	climport_invalidate(address_to_pointer(p), PAGE);
	fake_cuda_free(p);
	fixture_end();
}

LIB_TEST(grown_around, "An export drops every kept export of freed memory in the allocation, "
		       "wherever the kept range begins.")
{
	const size_t whole = 16 * PAGE;
	uintptr_t p = fake_cuda_alloc(0, whole), other = fake_cuda_alloc(0, PAGE);

	fake_cuda_free(p);
	for (size_t at = 0; at < whole; at += 4 * PAGE) {
		EXPECT_EQ(fake_cuda_alloc_at(0, 2 * PAGE, p + at), p + at);
		close(climport_export(p + at, PAGE, CLIMPORT_KEEP).fd);
		fake_cuda_free(p + at);
	}
	close(climport_export(other, PAGE, CLIMPORT_KEEP).fd);
	EXPECT_EQ(fake_cuda_alloc_at(0, whole, p), p);
	close(climport_export(p + PAGE, PAGE, CLIMPORT_KEEP).fd);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, whole + PAGE); /* and PAGE bytes of other */
	climport_invalidate(address_to_pointer(p), whole);
	climport_invalidate(address_to_pointer(other), PAGE);
	fake_cuda_free(p);
	fake_cuda_free(other);
}

LIB_TEST(driver_forks, "CUDA's driver may fork in the question whether kept memory still exists.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	alarm(TEST_HANG_S);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	fake_cuda_free(p);
	EXPECT_EQ(fake_cuda_alloc_at(0, PAGE, p), p);
	fake_cuda_set_forks(true);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	climport_invalidate(address_to_pointer(p), PAGE);
	fake_cuda_set_forks(false);
	fake_cuda_free(p);
	alarm(0);
}

/* Leaves the process @left descriptors; the array takes the rest. */
static int use_up(int *fds, int room, int left)
{
	int count = 0;

	while (count < room && (fds[count] = dup(0)) >= 0)
		count++;
	EXPECT(count < room && errno == EMFILE);
	while (left--)
		close(fds[--count]);
	return count;
}

TEST_EACH(no_descriptors, struct flags_row, flag_rows,
	  "If the process has no descriptor left, kept exports are given up.")
{
	enum { KEPT = 20, LIMIT = 256 };
	uintptr_t p[KEPT], q;
	struct rlimit before;
	int fds[LIMIT], count;

	fixture_begin();
	q = fake_cuda_alloc(0, PAGE);
	process_limit_descriptors(LIMIT, &before);
	for (int i = 0; i < KEPT; i++) {
		p[i] = fake_cuda_alloc(0, PAGE);
		close(climport_export(p[i], PAGE, CLIMPORT_KEEP).fd);
	}
	count = use_up(fds, LIMIT, 0);
	close(climport_export(q, PAGE, row->flags).fd);
	close(climport_export(p[KEPT - 1], PAGE, CLIMPORT_KEEP).fd);
	while (count)
		close(fds[--count]);
	for (int i = 0; i < KEPT; i++) {
		climport_invalidate(address_to_pointer(p[i]), PAGE);
		fake_cuda_free(p[i]);
	}
	climport_invalidate(address_to_pointer(q), PAGE);
	fake_cuda_free(q);
	setrlimit(RLIMIT_NOFILE, &before);
	fixture_end();
}

LIB_TEST(no_descriptors_at_all, "If no kept export can be given up, the error is -EMFILE.")
{
	enum { LIMIT = 256 };
	uintptr_t p = fake_cuda_alloc(0, PAGE);
	struct climport_dmabuf d = untouched;
	struct rlimit before;
	int fds[LIMIT], count, ret[3];

	process_limit_descriptors(LIMIT, &before);
	for (int left = 0; left < 2; left++) {
		count = use_up(fds, LIMIT, left);
		ret[left] = climport_export_dmabuf(address_to_pointer(p), PAGE, CLIMPORT_KEEP, &d,
						   sizeof(d));
		while (count)
			close(fds[--count]);
	}
	ret[2] = climport_export_dmabuf(address_to_pointer(p), PAGE, CLIMPORT_KEEP, &d, sizeof(d));
	setrlimit(RLIMIT_NOFILE, &before);
	EXPECT_EQ(ret[0], -EMFILE);
	EXPECT_EQ(ret[1], -EMFILE); /* the dma-buf takes the last descriptor */
	EXPECT_EQ(ret[2], 0);
	close(d.fd);
	climport_invalidate(address_to_pointer(p), PAGE);
	fake_cuda_free(p);
}

/* Like a daemon: closes each descriptor, and opens a new file with the number. */
static void take_numbers(int others[], int from, int to)
{
	for (int fd = from; fd < to; fd++)
		others[fd] = close(fd) ? -1 : memfd_create("other", MFD_CLOEXEC);
}

static const struct closed_row {
	const char *name;
	bool reused; /* the numbers, at the time of the export */
} closed_rows[] = {
	{ "and_reused", true },
	{ "and_free", false },
};

TEST_EACH(closed, struct closed_row, closed_rows,
	  "A program may close all descriptors and reuse the numbers, and no foreign "
	  "descriptor is used.")
{
	enum { FIRST = 3, LAST = 64 };
	struct climport_dmabuf d;
	int others[LAST];
	uintptr_t p, q;

	fixture_begin();
	p = fake_cuda_alloc(0, PAGE);
	q = fake_cuda_alloc(0, PAGE);
	memory_set(p, 5);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	close(climport_export(q, PAGE, CLIMPORT_KEEP).fd);
	take_numbers(others, FIRST, LAST);
	if (!row->reused)
		for (int fd = FIRST; fd < LAST; fd++)
			close(others[fd]);
	d = climport_export(p, PAGE, CLIMPORT_KEEP);
	EXPECT_EQ(dmabuf_read_byte(&d, 0), 5);
	close(d.fd);
	climport_invalidate(address_to_pointer(p), PAGE);
	climport_invalidate(address_to_pointer(q), PAGE);
	for (int fd = FIRST; fd < LAST && row->reused; fd++)
		EXPECT(others[fd] < 0 || !close(others[fd]));
	fixture_recount_descriptors();
	fake_cuda_free(p);
	fake_cuda_free(q);
	fixture_end();
}
