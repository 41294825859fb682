/* SPDX-License-Identifier: Apache-2.0 */
/* climport_register() and climport_unregister().  Each sentence of <CL/climport.h>. */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT "cuMemGetHandleForAddressRange"
#define DMA_BUF_SUPPORTED 124 /* CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED */

static int register_at(uintptr_t address, size_t size, struct climport_registration *out)
{
	return climport_register((const void *)address, size, 0, out, sizeof(*out));
}

static void register_once(uintptr_t address, size_t size)
{
	struct climport_registration r = fixture_register(address, size);

	climport_unregister(&r);
}

static void register_invalidate(uintptr_t address, size_t size)
{
	climport_invalidate((const void *)address, size);
}

static void register_write_byte(uintptr_t address, unsigned char byte)
{
	*(unsigned char *)fake_cuda_memory(address) = byte;
}

/* Byte @i of the registered allocation. */
static int register_read_byte(const struct climport_registration *r, size_t i)
{
	unsigned char byte = 0;

	EXPECT_EQ(pread(r->fd, &byte, 1, (off_t)(r->offset + i)), 1);
	return byte;
}

LIB_TEST(miss, "The first registration is a dma-buf of the whole allocation.")
{
	uintptr_t p = fake_cuda_alloc(0, 3 * PAGE);
	uint64_t misses = fixture_read_stats().misses;
	struct climport_registration r;

	register_write_byte(p + 5000, 33);
	r = fixture_register(p + 5000, 100);
	EXPECT_EQ((uintptr_t)r.base, p);
	EXPECT_EQ(r.length, 3 * PAGE);
	EXPECT_EQ(register_read_byte(&r, 5000), 33);
	EXPECT(r.id);
	EXPECT_EQ(fixture_read_stats().misses - misses, 1);
	climport_unregister(&r);
	register_invalidate(p, 1);
	fake_cuda_free(p);
}

LIB_TEST(
	given_back_twice,
	"A second climport_unregister() of a struct leaves the registrations of other users alone.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);
	struct climport_registration first, second;

	register_write_byte(p, 55);
	first = fixture_register(p, 1);
	climport_unregister(&first);
	second = fixture_register(p, 1);
	climport_unregister(&first);
	register_invalidate(p, 1);
	EXPECT_EQ(register_read_byte(&second, 0), 55);
	climport_unregister(&second);
	fake_cuda_free(p);
}

LIB_TEST(miss_within_page, "If an allocation begins within a page, the dma-buf has an offset.")
{
	uintptr_t p = fake_cuda_alloc(0, 1000);
	struct climport_registration r;

	EXPECT(p % PAGE);
	register_write_byte(p, 44);
	r = fixture_register(p + 1, 10);
	EXPECT_EQ(r.offset, p % PAGE);
	EXPECT_EQ(register_read_byte(&r, 0), 44);
	climport_unregister(&r);
	register_invalidate(p, 1);
	fake_cuda_free(p);
}

LIB_TEST(hit,
	 "A later registration costs a single call of CUDA, for the buffer id, and no descriptor.")
{
	uintptr_t p = fake_cuda_alloc(0, 4 * PAGE);
	struct climport_registration first = fixture_register(p, PAGE), again;
	uint64_t hits = fixture_read_stats().hits;
	int fds = process_count_descriptors(), calls = fake_cuda_calls(NULL);

	again = fixture_register(p + 2 * PAGE + 8, 16);
	EXPECT_EQ(fake_cuda_calls(NULL) - calls, 1);
	EXPECT_EQ(process_count_descriptors(), fds);
	EXPECT_EQ(fixture_read_stats().hits - hits, 1);
	EXPECT_EQ(again.id, first.id);
	EXPECT_EQ(again.fd, first.fd);
	EXPECT(again.base == first.base);
	climport_unregister(&first);
	climport_unregister(&again);
	register_invalidate(p, 1);
	fake_cuda_free(p);
}

LIB_TEST(stays, "After the last user a registration stays, and is counted as idle.")
{
	uintptr_t p = fake_cuda_alloc(0, 4 * PAGE);
	struct climport_registration r = fixture_register(p, PAGE);
	uint64_t id = r.id;

	EXPECT_EQ(fixture_read_stats().bytes_pinned, 4 * PAGE);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 0);
	climport_unregister(&r);
	EXPECT_EQ(fixture_read_stats().bytes_idle, 4 * PAGE);
	r = fixture_register(p, PAGE);
	EXPECT_EQ(r.id, id);
	climport_unregister(&r);
	register_invalidate(p, 1);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	fake_cuda_free(p);
}

LIB_TEST(edges, "The first and the last byte of an allocation are covered, and no byte beyond.")
{
	uintptr_t p = fake_cuda_alloc(0, 2 * PAGE);

	register_once(p, 2 * PAGE);
	register_once(p, 1);
	register_once(p + 2 * PAGE - 1, 1);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 1);
	EXPECT_EQ(fixture_register_error(p, 2 * PAGE + 1), -ERANGE);
	EXPECT_EQ(fixture_register_error(p + 1, 2 * PAGE), -ERANGE);
	register_invalidate(p, 1);
	fake_cuda_free(p);
}

LIB_TEST(neighbours, "Adjacent allocations have separate registrations.")
{
	const struct fake_cuda_segment two[] = { { 0, G, 1 }, { 0, G, 1 } };
	uintptr_t p = fake_cuda_vmm(two, 2);
	struct climport_registration a, b;

	EXPECT_EQ(fixture_register_error(p + G - PAGE, 2 * PAGE), -ERANGE);
	a = fixture_register(p + G - PAGE, 1);
	EXPECT_EQ((uintptr_t)a.base + a.length, p + G);
	b = fixture_register(p + G, PAGE);
	EXPECT_EQ((uintptr_t)b.base, p + G);
	EXPECT(a.id != b.id);
	climport_unregister(&a);
	climport_unregister(&b);
	register_invalidate(p, 2 * G);
	fake_cuda_vmm_free(p);
}

LIB_TEST(freed, "New memory at the address of freed memory has a new registration.")
{
	uintptr_t p = fake_cuda_alloc(0, 2 * PAGE);
	uint64_t stale = fixture_read_stats().stale;
	struct climport_registration old, new;

	register_write_byte(p, 1);
	old = fixture_register(p, PAGE);
	fake_cuda_free(p);
	EXPECT_EQ(fake_cuda_alloc_at(0, 2 * PAGE, p), p);
	register_write_byte(p, 2);
	new = fixture_register(p, PAGE);
	EXPECT(new.id != old.id);
	EXPECT_EQ(register_read_byte(&old, 0), 1);
	EXPECT_EQ(register_read_byte(&new, 0), 2);
	EXPECT_EQ(fixture_read_stats().stale - stale, 1);
	climport_unregister(&old);
	climport_unregister(&new);
	register_invalidate(p, 1);
	fake_cuda_free(p);
}

LIB_TEST(freed_for_good, "A call for freed memory ends the memory's registration.")
{
	uintptr_t p = fake_cuda_alloc(0, 2 * PAGE);
	struct climport_registration r;

	register_once(p, PAGE);
	fake_cuda_free(p);
	/* CUDA keeps the addresses, mapped for nobody. */
	EXPECT_EQ(register_at(p, PAGE, &r), -EACCES);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
}

LIB_TEST(freed_for_host, "Host memory at the address of freed memory is registered as host memory.")
{
	uintptr_t p = fake_cuda_alloc(0, 2 * PAGE);
	struct climport_registration r;

	fixture_skip_with_module();
	register_once(p, PAGE);
	fake_cuda_free(p);
	EXPECT(mmap((void *)p, 2 * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)p);
	EXPECT_EQ(register_at(p, PAGE, &r), 0);
	EXPECT_EQ(r.fd, -1); /* nobody exports it */
	climport_unregister(&r);
	register_invalidate(p, PAGE);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	mprotect((void *)p, 2 * PAGE, PROT_NONE); /* the fake's again */
}

LIB_TEST(invalidated, "An invalidated registration is not found, and ends with the last user.")
{
	uintptr_t p = fake_cuda_alloc(0, 4 * PAGE);
	struct climport_registration old, new;

	register_write_byte(p, 5);
	old = fixture_register(p, PAGE);
	register_invalidate(p + PAGE, 1);
	EXPECT_EQ(register_read_byte(&old, 0), 5);
	new = fixture_register(p, PAGE);
	EXPECT(new.id != old.id);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 8 * PAGE);
	climport_unregister(&old);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 4 * PAGE);
	climport_unregister(&new);
	climport_invalidate(NULL, SIZE_MAX);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	fake_cuda_free(p);
}

LIB_TEST(shared_with_exports, "Exports with CLIMPORT_KEEP and registrations find each other.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE), q = fake_cuda_alloc(0, PAGE);
	struct climport_dmabuf d;

	register_once(p, PAGE);
	EXPECT_EQ(climport_export_dmabuf((void *)p, PAGE, CLIMPORT_KEEP, &d, sizeof(d)), 0);
	close(d.fd);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 1);
	EXPECT_EQ(climport_export_dmabuf((void *)q, PAGE, CLIMPORT_KEEP, &d, sizeof(d)), 0);
	close(d.fd);
	register_once(q, PAGE);
	EXPECT_EQ(fake_cuda_calls(EXPORT), 2);
	register_invalidate(p, PAGE);
	register_invalidate(q, PAGE);
	fake_cuda_free(p);
	fake_cuda_free(q);
}

LIB_TEST(many_references, "A thread may hold a registration many times.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);
	struct climport_registration r[40];

	for (int i = 0; i < 40; i++)
		r[i] = fixture_register(p, PAGE);
	register_invalidate(p, PAGE);
	for (int i = 0; i < 40; i++) {
		EXPECT_EQ(fixture_read_stats().bytes_pinned, PAGE);
		climport_unregister(&r[i]);
	}
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	fake_cuda_free(p);
}

LIB_TEST(no_range, "A size of 0 and a wrapping range are -EINVAL.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	register_once(p, PAGE);
	EXPECT_EQ(fixture_register_error(p, 0), -EINVAL);
	EXPECT_EQ(fixture_register_error(p, SIZE_MAX), -EINVAL);
	EXPECT_EQ(fixture_register_error(p, 0 - p + 1), -EINVAL);
	register_invalidate(p, PAGE);
	fake_cuda_free(p);
}

LIB_TEST(no_memory_there, "A range without memory is -EFAULT.")
{
	EXPECT_EQ(fixture_register_error(0, PAGE), -EFAULT);
	EXPECT_EQ(fixture_register_error(PAGE, PAGE), -EFAULT);
}

LIB_TEST(managed_memory, "Managed memory moves, and cannot be registered: -EOPNOTSUPP.")
{
	uintptr_t p = fake_cuda_managed(0, PAGE);

	EXPECT_EQ(fixture_register_error(p, PAGE), -EOPNOTSUPP);
	fake_cuda_free(p);
}

LIB_TEST(no_exporter,
	 "If CUDA makes no dma-buf and the kernel module is not loaded, the error is -ENXIO.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);

	fixture_skip_with_module();
	fake_cuda_set_attribute(0, DMA_BUF_SUPPORTED, 0);
	EXPECT_EQ(fixture_register_error(p, PAGE), -ENXIO);
	fake_cuda_free(p);
}

static void register_free_and_reuse(void *address)
{
	fake_cuda_free(*(uintptr_t *)address);
	fake_cuda_alloc_at(0, 2 * PAGE, *(uintptr_t *)address);
}

LIB_TEST(freed_meanwhile,
	 "If the memory is freed and the address reused during the call, the error is -ENODEV.")
{
	uintptr_t p = fake_cuda_alloc(0, 2 * PAGE);

	fake_cuda_at(EXPORT, 1, register_free_and_reuse, &p);
	EXPECT_EQ(fixture_register_error(p, PAGE), -ENODEV);
	fake_cuda_free(p);
}

LIB_TEST(every_failure, "If any call of CUDA fails, the registration fails and leaves nothing.")
{
	uintptr_t p = fake_cuda_alloc(0, 2 * PAGE);

	for (int n = 1, failed = 1; failed; n++) {
		struct climport_registration r = { .fd = -7 };
		int ret;

		fake_cuda_fail(NULL, n, 999);
		ret = register_at(p, PAGE, &r);
		failed = fake_cuda_has_failed();
		fake_cuda_fail(NULL, 0, 0);
		EXPECT(!ret == (r.fd >= 0));
		if (!ret)
			climport_unregister(&r);
		register_invalidate(p, PAGE);
		EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	}
	fake_cuda_free(p);
}

LIB_TEST(keep_limit, "climport_set_limits() limits only registrations without users.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);
	struct climport_registration r;

	EXPECT_EQ(climport_set_limits(CLIMPORT_DEVICE, 0, UINT64_MAX), 0);
	r = fixture_register(p, PAGE);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, PAGE);
	climport_unregister(&r);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	EXPECT_EQ(climport_set_limits(CLIMPORT_DEVICE, UINT64_MAX, UINT64_MAX), 0);
	fake_cuda_free(p);
}

static void register_use_all(void)
{
	enum { LIMIT = 8 };
	struct climport_registration r[LIMIT];
	uintptr_t p[LIMIT + 1];

	for (int i = 0; i <= LIMIT; i++)
		p[i] = fake_cuda_alloc(0, PAGE);
	for (int i = 0; i < LIMIT; i++)
		r[i] = fixture_register(p[i], PAGE);
	EXPECT_EQ(fixture_register_error(p[LIMIT], PAGE), -ENOSPC);
	climport_unregister(&r[3]);
	r[3] = fixture_register(p[LIMIT], PAGE);
	EXPECT_EQ(fixture_register_error(p[3], PAGE), -ENOSPC);
	for (int i = 0; i < LIMIT; i++)
		climport_unregister(&r[i]);
	climport_invalidate(NULL, SIZE_MAX);
	for (int i = 0; i <= LIMIT; i++)
		fake_cuda_free(p[i]);
}

LIB_TEST(all_in_use,
	 "If all registrations, an eighth of RLIMIT_NOFILE, are in use, the error is -ENOSPC.")
{
	if (getenv("LIMITED"))
		register_use_all();
	else
		fixture_run_limited("all_in_use", 64);
}

LIB_TEST(no_descriptor,
	 "Without free descriptors idle registrations are given up, and then the error is -EMFILE.")
{
	enum { LIMIT = 256 };
	uintptr_t p = fake_cuda_alloc(0, PAGE), q = fake_cuda_alloc(0, PAGE);
	struct climport_registration r;
	int fds[LIMIT], count = 0, ret;
	struct rlimit before;

	process_limit_descriptors(LIMIT, &before);
	register_once(p, PAGE);
	while (count < LIMIT && (fds[count] = dup(0)) >= 0)
		count++;
	ret = register_at(q, PAGE, &r);
	EXPECT_EQ(ret, 0);
	EXPECT_EQ(register_at(p, PAGE, &r), -EMFILE);
	while (count)
		close(fds[--count]);
	setrlimit(RLIMIT_NOFILE, &before);
	climport_unregister(&r);
	register_invalidate(q, PAGE);
	fake_cuda_free(p);
	fake_cuda_free(q);
}

/* Each child's own. */
struct register_inherited {
	uintptr_t address;
	struct climport_registration registration;
};

static void register_in_child(void *arg)
{
	struct register_inherited *parent = arg;
	struct climport_registration r;

	if (!climport_register((void *)parent->address, PAGE, 0, &r, sizeof(r)))
		_exit(1);
	climport_unregister(&parent->registration);
	if (lseek(parent->registration.fd, 0, SEEK_CUR) < 0)
		_exit(2);
	climport_invalidate(NULL, SIZE_MAX);
	if (lseek(parent->registration.fd, 0, SEEK_CUR) < 0)
		_exit(3);
}

LIB_TEST(forked, "A child has no registrations, and may unregister the parent's.")
{
	struct register_inherited parent = { .address = fake_cuda_alloc(0, PAGE) };
	struct climport_registration again;
	char text[500];

	parent.registration = fixture_register(parent.address, PAGE);
	EXPECT_EQ(fixture_run_child(register_in_child, &parent, text, sizeof(text)), 0);
	again = fixture_register(parent.address, PAGE);
	EXPECT_EQ(again.id, parent.registration.id);
	climport_unregister(&again);
	climport_unregister(&parent.registration);
	register_invalidate(parent.address, PAGE);
	fake_cuda_free(parent.address);
}

#define THREADS 4
#define ALLOCATIONS 16

static uintptr_t register_memory[ALLOCATIONS];
static atomic_int register_wrong;

/* The first byte of allocation i is i. */
static void *register_many(void *number)
{
	unsigned int seed = (unsigned int)(uintptr_t)number;

	for (int n = 0; n < 2000; n++) {
		int i = rand_r(&seed) % ALLOCATIONS;
		struct climport_registration r;
		unsigned char byte = 255;

		if (register_at(register_memory[i] + n % 100, 8, &r)) {
			register_wrong++;
			continue;
		}
		if (pread(r.fd, &byte, 1, (off_t)r.offset) != 1 || byte != i)
			register_wrong++;
		climport_unregister(&r);
		if (n % 50 == 0)
			register_invalidate(register_memory[i], 1);
	}
	return NULL;
}

LIB_TEST(threads, "Threads that register, unregister and invalidate always find the right memory.")
{
	for (int i = 0; i < ALLOCATIONS; i++) {
		register_memory[i] = fake_cuda_alloc(0, PAGE);
		register_write_byte(register_memory[i], (unsigned char)i);
	}
	process_run_threads(THREADS, register_many);
	EXPECT_EQ(register_wrong, 0);
	climport_invalidate(NULL, SIZE_MAX);
	for (int i = 0; i < ALLOCATIONS; i++)
		fake_cuda_free(register_memory[i]);
}

static void *register_put(void *registration)
{
	climport_unregister(registration);
	return NULL;
}

LIB_TEST(other_thread, "A thread may unregister a registration of a different thread.")
{
	uintptr_t p = fake_cuda_alloc(0, PAGE);
	struct climport_registration r = fixture_register(p, PAGE);
	pthread_t thread;

	EXPECT_EQ(pthread_create(&thread, NULL, register_put, &r), 0);
	pthread_join(thread, NULL);
	register_invalidate(p, PAGE);
	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	fake_cuda_free(p);
}
