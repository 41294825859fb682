/* SPDX-License-Identifier: Apache-2.0 */
/* climport_export_dmabuf() and related functions: each sentence of <CL/climport.h>. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT "cuMemGetHandleForAddressRange"

static const struct climport_dmabuf untouched = { -7, 77, 777 };

static void *address_to_pointer(uintptr_t address)
{
	return (void *)address;
}

static bool is_untouched(const struct climport_dmabuf *d)
{
	return d->fd == untouched.fd && d->offset == untouched.offset && d->size == untouched.size;
}

/* The error of an export; expects no change. */
static int climport_export_error(uintptr_t address, size_t size, unsigned int flags)
{
	struct climport_dmabuf d = untouched;
	int fds = process_count_descriptors(),
	    ret = climport_export_dmabuf(address_to_pointer(address), size, flags, &d);

	EXPECT_EQ(process_count_descriptors(), fds);
	EXPECT(is_untouched(&d));
	return ret;
}

static struct climport_dmabuf climport_export(uintptr_t address, size_t size, unsigned int flags)
{
	struct climport_dmabuf d = untouched;

	EXPECT_EQ(climport_export_dmabuf(address_to_pointer(address), size, flags, &d), 0);
	EXPECT_EQ(d.size, size);
	return d;
}

/* Byte @i of the exported range. */
static int dmabuf_read_byte(const struct climport_dmabuf *d, size_t i)
{
	unsigned char byte = 0;

	EXPECT_EQ(pread(d->fd, &byte, 1, (off_t)(d->offset + i)), 1);
	return byte;
}

static void memory_set(uintptr_t address, unsigned char byte)
{
	*(unsigned char *)fake_cuda_memory(address) = byte;
}

static void no_module(void)
{
	if (!access("/dev/gdmabuf", F_OK))
		test_skip("/dev/gdmabuf is there");
}

LIB_TEST(device_memory,
	 "CUDA memory is exported as a dma-buf, and offset is the position of the range.")
{
	uintptr_t p = fake_cuda_alloc(0, 3 * PAGE);
	struct climport_dmabuf d;

	memory_set(p + 5000, 33);
	d = climport_export(p + 5000, 100, 0);
	EXPECT_EQ(d.offset, 5000 % PAGE);
	EXPECT_EQ(dmabuf_read_byte(&d, 0), 33);
	EXPECT(fcntl(d.fd, F_GETFD) & FD_CLOEXEC);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	close(d.fd);
	fake_cuda_free(p);
}

/* An export that is not kept, and a kept export. */
static const struct flags_row {
	const char *name;
	unsigned int flags;
} flag_rows[] = {
	{ "plain", 0 },
	{ "kept", CLIMPORT_KEEP },
};

TEST_EACH(within_page, struct flags_row, flag_rows,
	  "Memory that begins within a page is exported with the whole page.")
{
	struct climport_dmabuf d;
	uintptr_t p;

	fixture_begin();
	p = fake_cuda_alloc(0, 1000);
	EXPECT(p % PAGE);
	memory_set(p, 44);
	d = climport_export(p, 1000, row->flags);
	EXPECT_EQ(d.offset, p % PAGE);
	EXPECT_EQ(dmabuf_read_byte(&d, 0), 44);
	close(d.fd);
	climport_invalidate(address_to_pointer(p), 1000);
	fake_cuda_free(p);
	fixture_end();
}

static void set_current(int device)
{
	static void *context;

	if (context)
		fake_cuda_context_destroy(context);
	context = device < 0 ? NULL : fake_cuda_context_create(device);
	fake_cuda_set_current(context);
}

static void expect_retains(uintptr_t p, int first, int second)
{
	int before[] = { fake_cuda_retains(0), fake_cuda_retains(1) };

	close(climport_export(p, PAGE, 0).fd);
	EXPECT_EQ(fake_cuda_retains(0) - before[0], first);
	EXPECT_EQ(fake_cuda_retains(1) - before[1], second);
}

LIB_TEST(no_context,
	 "An export makes no context, and uses the memory's context or a current context.")
{
	const struct fake_cuda_segment segment = { 1, G, 1 };
	uintptr_t p = fake_cuda_alloc(1, PAGE), vmm = fake_cuda_vmm(&segment, 1);

	for (int current = -1; current < 2; current++) {
		set_current(current);
		expect_retains(p, 0, 0);
	}
	expect_retains(vmm, 0, 0);
	/*
	 * VMM memory has no context.  If no context of the device is current, the export holds
	 * the primary context.
	 */
	set_current(0);
	expect_retains(vmm, 0, 1);
	set_current(-1);
	expect_retains(vmm, 0, 1);
	fake_cuda_free(p);
	fake_cuda_vmm_free(vmm);
}

LIB_TEST(limit, "If the limit is 0 or too small, no registration stays.")
{
	uintptr_t p = fake_cuda_alloc(0, 4 * PAGE);

	EXPECT_EQ(climport_set_keep_limit(2, 0), -EINVAL);
	EXPECT_EQ(climport_set_keep_limit(CLIMPORT_HOST, 0), 0);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 4 * PAGE);
	EXPECT_EQ(climport_set_keep_limit(CLIMPORT_DEVICE, 4 * PAGE - 1), 0);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	EXPECT_EQ(climport_set_keep_limit(CLIMPORT_DEVICE, UINT64_MAX), 0);
	EXPECT_EQ(climport_set_keep_limit(CLIMPORT_HOST, UINT64_MAX), 0);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 4 * PAGE);
	climport_invalidate(address_to_pointer(p), 1);
	fake_cuda_free(p);
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

LIB_TEST(freed, "Freed memory is -EFAULT, and kept exports of the memory are dropped.")
{
	uintptr_t p = fake_cuda_alloc(0, 2 * PAGE);
	struct climport_dmabuf d = untouched;
	int error;

	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	fake_cuda_free(p);
	no_module();
	error = climport_export_dmabuf(address_to_pointer(p), PAGE, CLIMPORT_KEEP, &d);
	/* A sanitizer may have mapped memory at the address. */
	EXPECT(error == -EFAULT ||
	       (error == -ENXIO && !msync(address_to_pointer(p), PAGE, MS_ASYNC)));
	EXPECT(is_untouched(&d));
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
}

static void free_and_reuse(void *address)
{
	fake_cuda_free(*(uintptr_t *)address);
	fake_cuda_alloc_at(0, 2 * PAGE, *(uintptr_t *)address);
}

TEST_EACH(freed_meanwhile, struct flags_row, flag_rows,
	  "If the memory is freed and the address reused during the export, the error is -ENODEV.")
{
	uintptr_t p;

	fixture_begin();
	p = fake_cuda_alloc(0, 2 * PAGE);
	fake_cuda_at(EXPORT, 1, free_and_reuse, &p);
	EXPECT_EQ(climport_export_error(p, PAGE, row->flags), -ENODEV);
	fake_cuda_free(p);
	fixture_end();
}

LIB_TEST(outlives, "A dma-buf keeps the memory's bytes after a free.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);
	struct climport_dmabuf d;

	memory_set(p, 9);
	d = climport_export(p, PAGE, 0);
	fake_cuda_free(p);
	EXPECT_EQ(dmabuf_read_byte(&d, 0), 9);
	close(d.fd);
}

LIB_TEST(segments, "A range of several allocations is exported whole, and never kept.")
{
	const struct fake_cuda_segment two[] = { { 0, G, 1 }, { 0, G, 1 } };
	uintptr_t p = fake_cuda_vmm(two, 2);
	struct climport_dmabuf d;

	memory_set(p + G, 6);
	for (int i = 1; i < 3; i++) {
		d = climport_export(p + G - PAGE, 2 * PAGE, CLIMPORT_KEEP);
		EXPECT_EQ(dmabuf_read_byte(&d, PAGE), 6);
		close(d.fd);
		EXPECT_EQ(fake_cuda_calls(EXPORT), i);
	}
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	fake_cuda_vmm_free(p);
}

LIB_TEST(half_owned, "If only a part of a range is memory of the device, the error is -EFAULT.")
{
	const struct fake_cuda_segment one = { 0, G, 1 }, other[] = { { 0, G, 1 }, { 1, G, 1 } };
	uintptr_t p = fake_cuda_vmm(&one, 1);

	EXPECT_EQ(climport_export_error(p, G + 1, 0), -EFAULT);
	EXPECT_EQ(climport_export_error(p + G - 1, 2, CLIMPORT_KEEP), -EFAULT);
	fake_cuda_vmm_free(p);
	p = fake_cuda_vmm(other, 2);
	EXPECT_EQ(climport_export_error(p, 2 * G, 0), -EFAULT);
	fake_cuda_vmm_free(p);
}

LIB_TEST(no_range, "A size of 0, a wrapping range and an unknown flag are -EINVAL.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	for (unsigned int flags = 0; flags <= CLIMPORT_KEEP; flags += CLIMPORT_KEEP) {
		EXPECT_EQ(climport_export_error(p, 0, flags), -EINVAL);
		EXPECT_EQ(climport_export_error(p, SIZE_MAX, flags), -EINVAL);
		EXPECT_EQ(climport_export_error(p, 0 - p + 1, flags), -EINVAL);
	}
	EXPECT_EQ(climport_export_error(p, PAGE, 16), -EINVAL);
	EXPECT_EQ(climport_export_error(p, PAGE, ~0u), -EINVAL);
	EXPECT(climport_export_error(p, 0 - p - 1, CLIMPORT_KEEP) < 0);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 0);
	fake_cuda_free(p);
}

LIB_TEST(managed, "Managed memory moves, and is -EOPNOTSUPP for any flags.")
{
	uintptr_t p = fake_cuda_managed(0, PAGE);

	for (unsigned int flags = 0; flags < 8; flags++)
		EXPECT_EQ(climport_export_error(p, PAGE, flags), -EOPNOTSUPP);
	fake_cuda_free(p);
}

LIB_TEST(read_only, "A read-only dma-buf of CUDA memory is -EOPNOTSUPP.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	EXPECT_EQ(climport_export_error(p, PAGE, CLIMPORT_READ_ONLY), -EOPNOTSUPP);
	EXPECT_EQ(climport_export_error(p, PAGE, CLIMPORT_READ_ONLY | CLIMPORT_MAPPABLE),
		  -EOPNOTSUPP);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 0);
	fake_cuda_free(p);
}

LIB_TEST(no_module,
	 "If an export needs the module and the module is not loaded, the error is -ENXIO.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE), host = fake_cuda_host(0, PAGE);
	static char local[100];

	no_module();
	EXPECT_EQ(climport_export_error(p, PAGE, CLIMPORT_MAPPABLE), -ENXIO);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 0);
	EXPECT_EQ(climport_export_error((uintptr_t)local, sizeof(local), 0), -ENXIO);
	EXPECT_EQ(climport_export_error((uintptr_t)local, sizeof(local), CLIMPORT_READ_ONLY),
		  -ENXIO);
	EXPECT_EQ(climport_export_error(host, PAGE, CLIMPORT_KEEP), -ENXIO);
	fake_cuda_set_attribute(0, 124, 0); /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */
	EXPECT_EQ(climport_export_error(p, PAGE, 0), -ENXIO);
	EXPECT_EQ(climport_export_error(p, PAGE, CLIMPORT_KEEP), -ENXIO);
	fake_cuda_free(p);
	fake_cuda_free(host);
}

LIB_TEST(nothing_there, "A range without memory is -EFAULT.")
{
	no_module();
	EXPECT_EQ(climport_export_error(0, PAGE, 0), -EFAULT);
	EXPECT_EQ(climport_export_error(PAGE, PAGE, CLIMPORT_READ_ONLY), -EFAULT);
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

	fixture_begin();
	stale = fixture_read_stats().stale;
	p = fake_cuda_alloc(0, 6 * PAGE);
	fake_cuda_free(p);
	EXPECT_EQ(fake_cuda_alloc_at(0, 2 * PAGE, p), p);
	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	fake_cuda_free(p);
	EXPECT_EQ(fake_cuda_alloc_at(0, 6 * PAGE, p), p);
	close(climport_export(p, 6 * PAGE, row->flags).fd);
	EXPECT_EQ(fixture_read_stats().stale - stale, 1);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, row->flags ? 6 * PAGE : 0);
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

	alarm(60);
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
		ret[left] = climport_export_dmabuf(address_to_pointer(p), PAGE, CLIMPORT_KEEP, &d);
		while (count)
			close(fds[--count]);
	}
	ret[2] = climport_export_dmabuf(address_to_pointer(p), PAGE, CLIMPORT_KEEP, &d);
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

TEST_EACH(every_failure, struct flags_row, flag_rows,
	  "If any call of CUDA fails, the export fails and leaves nothing.")
{
	uintptr_t p;

	fixture_begin();
	p = fake_cuda_alloc(0, 2 * PAGE);
	for (int n = 1, failed = 1; failed; n++) {
		struct climport_dmabuf d = untouched;
		int ret;

		fake_cuda_fail(NULL, n, 999);
		ret = climport_export_dmabuf(address_to_pointer(p), PAGE, row->flags, &d);
		failed = fake_cuda_has_failed();
		fake_cuda_fail(NULL, 0, 0);
		EXPECT(!ret == (d.fd >= 0));
		if (ret)
			EXPECT(is_untouched(&d));
		else
			close(d.fd);
		climport_invalidate(address_to_pointer(p), PAGE);
		EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	}
	fake_cuda_free(p);
	fixture_end();
}

/* A thread that is cancelled, then exports, with a cancellation point in libcuda. */
struct cancelled {
	uintptr_t address;
	int ret;
	bool returned;
	struct climport_dmabuf dmabuf;
};

static void cancel_here(void *unused)
{
	(void)unused;
	pthread_testcancel();
}

static void *export_cancelled(void *arg)
{
	struct cancelled *c = arg;

	fake_cuda_at(NULL, 1, cancel_here, NULL);
	pthread_cancel(pthread_self());
	c->ret = climport_export_dmabuf(address_to_pointer(c->address), PAGE, CLIMPORT_KEEP,
					&c->dmabuf);
	c->returned = true;
	pthread_testcancel();
	return NULL;
}

static void expect_export_despite_cancel(uintptr_t address)
{
	struct cancelled c = { .address = address, .dmabuf = untouched };
	pthread_t thread;
	void *result;

	EXPECT_EQ(pthread_create(&thread, NULL, export_cancelled, &c), 0);
	EXPECT_EQ(pthread_join(thread, &result), 0);
	EXPECT(c.returned);
	EXPECT(result == PTHREAD_CANCELED);
	EXPECT_EQ(c.ret, 0);
	close(c.dmabuf.fd);
}

LIB_TEST(cancelled, "A thread that is cancelled is not cancelled in an export.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	expect_export_despite_cancel(p);
	climport_invalidate(address_to_pointer(p), PAGE);
	fake_cuda_free(p);
}

LIB_TEST(cancelled_kept, "A thread that is cancelled is not cancelled in an export of kept memory.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	close(climport_export(p, PAGE, CLIMPORT_KEEP).fd);
	expect_export_despite_cancel(p);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 1);
	climport_invalidate(address_to_pointer(p), PAGE);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	fake_cuda_free(p);
}
