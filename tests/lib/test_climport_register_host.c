/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport_register() of host memory: the program's promise, and in a guest with the kernel module
 * the registrations that the module makes.  tests/import/test_host_registration.c has a fake module.
 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE (4 * PAGE)
#define MANY 20000

#define PROMISE_TEST(id, sentence)          \
	static void promise_##id(void);     \
	LIB_TEST(id, sentence)              \
	{                                   \
		fixture_skip_with_module(); \
		promise_##id();             \
	}                                   \
	static void promise_##id(void)

static struct climport_registration promise_register(const void *address, size_t size)
{
	struct climport_registration r = fixture_register((uintptr_t)address, size);

	EXPECT_EQ(r.fd, -1);
	return r;
}

static int promise_error(const void *address, size_t size)
{
	return fixture_register_error((uintptr_t)address, size);
}

static char *promise_map(int protection, int flags, int fd)
{
	char *p = mmap(NULL, SIZE, protection, flags, fd, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

static char *promise_map_anonymous(void)
{
	return promise_map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static char *promise_map_file(int fd, int flags)
{
	char *p;

	EXPECT(fd >= 0);
	p = promise_map(PROT_READ | PROT_WRITE, flags, fd);
	close(fd);
	return p;
}

static int promise_open_memfd(void)
{
	int fd = memfd_create("promise", MFD_CLOEXEC);

	EXPECT(!ftruncate(fd, SIZE));
	return fd;
}

/* A file on a disk.  Filesystems of guests resize no file without a name. */
static int promise_open_disk(void)
{
	char path[] = "promise-XXXXXX";
	int fd = mkstemp(path);

	EXPECT(fd >= 0);
	EXPECT(!ftruncate(fd, SIZE));
	unlink(path);
	return fd;
}

static char *promise_map_shared(void)
{
	return promise_map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static char *promise_map_memfd(void)
{
	return promise_map_file(promise_open_memfd(), MAP_SHARED);
}

static char *promise_map_memfd_private(void)
{
	return promise_map_file(promise_open_memfd(), MAP_PRIVATE);
}

static char *promise_map_private_file(void)
{
	return promise_map_file(promise_open_disk(), MAP_PRIVATE);
}

static const struct promise_kind {
	const char *name;
	char *(*map)(void);
} promise_kinds[] = {
	{ "anonymous", promise_map_anonymous },
	{ "shared", promise_map_shared },
	{ "memfd", promise_map_memfd },
	{ "memfd_private", promise_map_memfd_private },
	{ "private_file", promise_map_private_file },
};

TEST_EACH(kind, struct promise_kind, promise_kinds,
	  "Host memory of each kind is registered by whole pages, without a descriptor.")
{
	struct climport_registration r;
	char *p;

	fixture_skip_with_module();
	fixture_begin();
	p = row->map();
	r = promise_register(p + PAGE + 100, PAGE);
	EXPECT(r.base == p + PAGE);
	EXPECT_EQ(r.length, 2 * PAGE);
	EXPECT_EQ(r.offset, 0);
	EXPECT(r.id);
	climport_unregister(&r);
	munmap(p, SIZE);
	fixture_end();
}

PROMISE_TEST(pinned_by_cuda, "CUDA's pinned host memory is host memory.")
{
	uintptr_t p = fake_cuda_host(0, PAGE);
	struct climport_registration r = promise_register((void *)p, PAGE);

	climport_unregister(&r);
	fake_cuda_free(p);
}

PROMISE_TEST(hit,
	     "A call for any part of held pages finds the registration, without a call of CUDA.")
{
	char *p = promise_map_anonymous();
	struct climport_registration first = promise_register(p, SIZE), again;
	uint64_t hits = fixture_read_stats().hits;
	int calls = fake_cuda_calls(NULL);

	again = promise_register(p + 3 * PAGE + 8, 16);
	EXPECT_EQ(again.id, first.id);
	EXPECT(again.base == first.base);
	EXPECT_EQ(again.length, first.length);
	EXPECT_EQ(fake_cuda_calls(NULL), calls);
	EXPECT_EQ(fixture_read_stats().hits - hits, 1);
	climport_unregister(&first);
	climport_unregister(&again);
	munmap(p, SIZE);
}

PROMISE_TEST(overlap,
	     "Registrations that overlap, and do not cover each other, are each their own.")
{
	char *p = promise_map_anonymous();
	struct climport_registration low = promise_register(p, 3 * PAGE);
	struct climport_registration high = promise_register(p + PAGE, 3 * PAGE), found;

	EXPECT(low.id != high.id);
	found = promise_register(p, PAGE);
	EXPECT_EQ(found.id, low.id);
	climport_unregister(&found);
	climport_unregister(&low);
	found = promise_register(p + PAGE, PAGE);
	EXPECT_EQ(found.id, high.id);
	climport_unregister(&found);
	climport_unregister(&high);
	munmap(p, SIZE);
}

PROMISE_TEST(ends, "The last of several users ends a promise: a later registration has another id.")
{
	char *p = promise_map_anonymous();
	struct climport_registration first = promise_register(p, SIZE);
	struct climport_registration second = promise_register(p, SIZE), later;

	climport_unregister(&first);
	first = promise_register(p, SIZE);
	EXPECT_EQ(first.id, second.id);
	climport_unregister(&first);
	climport_unregister(&second);
	later = promise_register(p, SIZE);
	EXPECT(later.id != second.id);
	climport_unregister(&later);
	munmap(p, SIZE);
}

PROMISE_TEST(invalidated, "climport_invalidate() ends a promise that is held.")
{
	char *p = promise_map_anonymous();
	struct climport_registration old = promise_register(p, SIZE), new;

	climport_invalidate(p + PAGE, 1);
	new = promise_register(p, PAGE);
	EXPECT(new.id != old.id);
	EXPECT_EQ(new.length, PAGE);
	climport_unregister(&old);
	old = promise_register(p, PAGE);
	EXPECT_EQ(old.id, new.id);
	climport_unregister(&old);
	climport_unregister(&new);
	munmap(p, SIZE);
}

PROMISE_TEST(nothing_pinned, "A promise pins nothing.")
{
	char *p = promise_map_anonymous();
	struct climport_registration r = promise_register(p, SIZE);

	EXPECT_EQ(fixture_read_stats().bytes_pinned, 0);
	climport_unregister(&r);
	munmap(p, SIZE);
}

PROMISE_TEST(no_range, "A size of 0 and a wrapping range are -EINVAL.")
{
	char *p = promise_map_anonymous();
	struct climport_registration r = promise_register(p, SIZE);

	EXPECT_EQ(promise_error(p, 0), -EINVAL);
	EXPECT_EQ(promise_error(p, SIZE_MAX), -EINVAL);
	EXPECT_EQ(promise_error(p, 0 - (uintptr_t)p + 1), -EINVAL);
	climport_unregister(&r);
	munmap(p, SIZE);
}

PROMISE_TEST(not_mapped, "A range with a page that is not mapped is -EFAULT.")
{
	char *p = promise_map_anonymous();

	munmap(p + PAGE, PAGE);
	EXPECT_EQ(promise_error(p, SIZE), -EFAULT);
	EXPECT_EQ(promise_error((void *)(UINTPTR_MAX - 2 * PAGE), PAGE), -EFAULT);
	munmap(p, SIZE);
}

/* A memfd or file of the test's, of PAGE + 1 bytes; the mapping has SIZE. */
static char *promise_shorten(int fd, int flags)
{
	EXPECT(!ftruncate(fd, PAGE + 1));
	return promise_map_file(fd, flags);
}

static char *promise_map_short_memfd(void)
{
	return promise_shorten(promise_open_memfd(), MAP_SHARED);
}

static char *promise_map_short_memfd_private(void)
{
	return promise_shorten(promise_open_memfd(), MAP_PRIVATE);
}

static char *promise_map_short_file(void)
{
	return promise_shorten(promise_open_disk(), MAP_PRIVATE);
}

static char *promise_map_short_shm(void)
{
	int fd = shm_open("/climport-promise", O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		test_skip("/dev/shm is not there");
	shm_unlink("/climport-promise");
	return promise_shorten(fd, MAP_SHARED);
}

/* The program has written the pages that the truncation takes away. */
static char *promise_map_truncated(void)
{
	int fd = promise_open_memfd();
	char *p = promise_map_file(dup(fd), MAP_SHARED);

	memset(p, 1, SIZE);
	EXPECT(!ftruncate(fd, PAGE + 1));
	close(fd);
	return p;
}

/* Shared memory does not grow with its mapping. */
static char *promise_map_grown(void)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	p = mremap(p, 2 * PAGE, SIZE, MREMAP_MAYMOVE);
	EXPECT(p != MAP_FAILED);
	return p;
}

static const struct promise_kind promise_short[] = {
	{ "memfd", promise_map_short_memfd },
	{ "memfd_private", promise_map_short_memfd_private },
	{ "private_file", promise_map_short_file },
	{ "shm", promise_map_short_shm },
	{ "truncated", promise_map_truncated },
	{ "grown", promise_map_grown },
};

TEST_EACH(
	beyond_the_end, struct promise_kind, promise_short,
	"Pages beyond the end of the file that they map are -EFAULT, and the pages before are not.")
{
	struct climport_registration r;
	char *p, text[64];

	fixture_skip_with_module();
	fixture_begin();
	p = row->map();
	EXPECT_EQ(promise_error(p, SIZE), -EFAULT);
	snprintf(text, sizeof(text), "host memory up to %#zx ", (size_t)p + SIZE);
	EXPECT(strstr(climport_last_error(), text));
	EXPECT(strstr(climport_last_error(), "the file ends before"));
	EXPECT_EQ(promise_error(p + 2 * PAGE, 1), -EFAULT);
	r = promise_register(p, 2 * PAGE);
	climport_unregister(&r);
	munmap(p, SIZE);
	fixture_end();
}

PROMISE_TEST(read_only, "A range with a page that is mapped without write access is -EACCES.")
{
	char *p = promise_map_anonymous();

	EXPECT(!mprotect(p + PAGE, PAGE, PROT_READ));
	EXPECT_EQ(promise_error(p, SIZE), -EACCES);
	munmap(p, SIZE);
}

PROMISE_TEST(shared_file, "A shared mapping of a file on a disk is -EOPNOTSUPP.")
{
	char *p = promise_map_file(promise_open_disk(), MAP_SHARED);
	struct climport_registration r;

	if (!climport_register(p, SIZE, 0, &r, sizeof(r))) {
		climport_unregister(&r);
		test_skip("the working directory is on no disk");
	}
	EXPECT_EQ(promise_error(p, SIZE), -EOPNOTSUPP);
	munmap(p, SIZE);
}

PROMISE_TEST(many, "Any number of registrations of host memory are held, and each is found.")
{
	static struct climport_registration r[MANY];
	struct climport_registration found;
	char *p =
		mmap(NULL, MANY * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	for (size_t i = 0; i < MANY; i++)
		r[i] = promise_register(p + i * PAGE, PAGE);
	for (size_t i = 0; i < MANY; i++) {
		found = promise_register(p + i * PAGE + 8, 8);
		EXPECT_EQ(found.id, r[i].id);
		climport_unregister(&found);
	}
	for (size_t i = 0; i < MANY; i++)
		climport_unregister(&r[i]);
	munmap(p, MANY * PAGE);
}

PROMISE_TEST(zeroed, "To unregister a zeroed registration does nothing.")
{
	char *p = promise_map_anonymous();
	struct climport_registration r = promise_register(p, SIZE), zeroed = { 0 }, again;

	climport_unregister(&zeroed);
	again = promise_register(p, SIZE);
	EXPECT_EQ(again.id, r.id);
	climport_unregister(&again);
	climport_unregister(&r);
	munmap(p, SIZE);
}

/* Each child's own. */
struct promise_inherited {
	char *address;
	struct climport_registration registration;
};

static void promise_in_child(void *arg)
{
	struct promise_inherited *parent = arg;
	struct climport_registration own;

	if (climport_register(parent->address, SIZE, 0, &own, sizeof(own)) ||
	    own.id == parent->registration.id)
		_exit(1);
	climport_unregister(&parent->registration);
	parent->registration = own;
	if (climport_register(parent->address, SIZE, 0, &own, sizeof(own)) ||
	    own.id != parent->registration.id)
		_exit(2);
	climport_unregister(&own);
	climport_unregister(&own);
}

PROMISE_TEST(forked,
	     "A child has no registrations, may unregister the parent's, and makes its own.")
{
	struct promise_inherited parent = { .address = promise_map_anonymous() };
	struct climport_registration again;
	char text[500];

	parent.registration = promise_register(parent.address, SIZE);
	EXPECT_EQ(fixture_run_child(promise_in_child, &parent, text, sizeof(text)), 0);
	again = promise_register(parent.address, SIZE);
	EXPECT_EQ(again.id, parent.registration.id);
	climport_unregister(&again);
	climport_unregister(&parent.registration);
	munmap(parent.address, SIZE);
}

#define THREADS 4

static char *promise_memory;
static atomic_int promise_wrong;

/* Each thread's registration covers the range that the thread asked for. */
static void *promise_register_many(void *number)
{
	unsigned int seed = (unsigned int)(uintptr_t)number;

	for (int n = 0; n < 5000; n++) {
		const char *at = promise_memory + rand_r(&seed) % (SIZE - 8);
		struct climport_registration r;

		if (climport_register(at, 8, 0, &r, sizeof(r))) {
			promise_wrong++;
			continue;
		}
		if ((const char *)r.base > at || (const char *)r.base + r.length < at + 8)
			promise_wrong++;
		climport_unregister(&r);
		if (n % 50 == 0)
			climport_invalidate(promise_memory, SIZE);
	}
	return NULL;
}

PROMISE_TEST(threads,
	     "Threads that register, unregister and invalidate always get what they ask for.")
{
	promise_memory = promise_map_anonymous();
	process_run_threads(THREADS, promise_register_many);
	EXPECT_EQ(promise_wrong, 0);
	munmap(promise_memory, SIZE);
}

static struct climport_registration module_register(const void *address, size_t size)
{
	struct climport_registration r = fixture_register((uintptr_t)address, size);

	EXPECT(r.fd >= 0);
	return r;
}

/* The library keeps a descriptor of the process's mappings. */
static void module_open_once(void)
{
	char *p = promise_map_anonymous();
	struct climport_registration r = module_register(p, PAGE);

	climport_unregister(&r);
	climport_invalidate(p, PAGE);
	munmap(p, SIZE);
	fixture_recount_descriptors();
}

static void module_begin(void)
{
	if (access("/dev/gdmabuf", F_OK))
		test_skip("/dev/gdmabuf is not there");
	fixture_begin();
	module_open_once();
}

static bool module_has_unpinned(void *unused)
{
	(void)unused;
	return !fixture_read_stats().bytes_pinned;
}

/* A thread of the module gives up pins of pages that have gone. */
static void module_end(char *p)
{
	climport_invalidate(NULL, SIZE_MAX);
	EXPECT(process_settles(module_has_unpinned, NULL));
	munmap(p, SIZE);
	fixture_end();
}

TEST_EACH(module, struct promise_kind, promise_kinds,
	  "With the kernel module, a registration of any kind is a dma-buf of the memory.")
{
	struct climport_registration r, again;
	char *p, *seen;

	module_begin();
	p = row->map();
	p[PAGE] = 55;
	r = module_register(p + PAGE + 100, PAGE);
	EXPECT(r.base == p + PAGE);
	EXPECT_EQ(r.length, 2 * PAGE);
	seen = mmap(NULL, r.length, PROT_READ, MAP_SHARED, r.fd, (off_t)r.offset);
	EXPECT(seen != MAP_FAILED);
	EXPECT_EQ(seen[0], 55);
	p[PAGE] = 66;
	EXPECT_EQ(seen[0], 66);
	munmap(seen, r.length);
	again = module_register(p + 2 * PAGE, 1);
	EXPECT_EQ(again.id, r.id);
	climport_unregister(&again);
	climport_unregister(&r);
	module_end(p);
}

static int module_file;

static char *module_map(void)
{
	module_file = promise_open_memfd();
	return promise_map_file(dup(module_file), MAP_SHARED);
}

static bool module_map_over(char *p)
{
	return mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
		    -1, 0) != MAP_FAILED;
}

static bool module_punch(char *p)
{
	(void)p;
	return !fallocate(module_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE);
}

static bool module_truncate(char *p)
{
	(void)p;
	return !ftruncate(module_file, 0) && !ftruncate(module_file, SIZE);
}

static bool module_remap(char *p)
{
	void *room = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     *elsewhere = mremap(p, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, room);

	munmap(elsewhere, SIZE);
	return mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, module_file, 0) == p;
}

static const struct module_change {
	const char *name;
	bool (*make)(char *p);
} module_changes[] = {
	{ "map_over", module_map_over },
	{ "punch", module_punch },
	{ "truncate", module_truncate },
	{ "remap", module_remap },
};

TEST_EACH(module_stale, struct module_change, module_changes,
	  "With the kernel module, memory that gets other pages has another registration.")
{
	struct climport_registration old, new;
	char *p;

	module_begin();
	p = module_map();
	old = module_register(p, SIZE);
	EXPECT(row->make(p));
	new = module_register(p, SIZE);
	EXPECT(new.id != old.id);
	climport_unregister(&old);
	climport_unregister(&new);
	close(module_file);
	module_end(p);
}
