/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations of host memory, by a fake of the kernel module and as promises.
 * tests/lib/test_climport_register_host.c has the promises as programs see them.
 */
#include "fake_gdmabuf.h"
#include "harness.h"
#include "process.h"

#include "import/export/export.h"
#include "import/export/host_registration.h"
#include "import/export/registration.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define SIZE (4 * PAGE)
#define LARGE ((size_t)5 << 20)

/* The last ended range. */
static uintptr_t host_registration_ended_at;
static int host_registration_ends;

static void host_registration_note_end(uintptr_t address, size_t size)
{
	(void)size;
	host_registration_ended_at = address;
	host_registration_ends++;
}

static uintptr_t host_registration_map(void)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	host_registration_on_end(host_registration_note_end);
	host_registration_ends = 0;
	return (uintptr_t)p;
}

static struct host_registration host_registration_of(uintptr_t address, size_t size)
{
	struct registration registration = { 0 };

	EXPECT_EQ(export_register(address, size, &registration), 0);
	EXPECT(!registration.ref.pin);
	return registration.host;
}

static void host_registration_drop(const struct host_registration *r)
{
	host_registration_put(r->slot, r->number);
}

/* What the module keeps for later goes, too. */
static void host_registration_unmap(uintptr_t address)
{
	export_invalidate(address, SIZE);
	munmap((void *)address, SIZE);
}

TEST(by_module, "A registration by the module is a dma-buf of the range's whole pages.")
{
	uintptr_t p = host_registration_map();
	struct host_registration r = host_registration_of(p + PAGE + 100, PAGE);

	EXPECT(r.fd >= 0);
	EXPECT(r.status);
	EXPECT_EQ(r.base, p + PAGE);
	EXPECT_EQ(r.size, 2 * PAGE);
	EXPECT(host_registration_is_current(&r));
	host_registration_drop(&r);
	host_registration_unmap(p);
}

TEST(by_module_found, "A call for a part of the pages makes no call of the module.")
{
	uintptr_t p = host_registration_map();
	struct host_registration r = host_registration_of(p, SIZE), found;

	fake_gdmabuf.error = EIO;
	EXPECT(host_registration_find(p + 100, PAGE, &found));
	fake_gdmabuf.error = 0;
	EXPECT_EQ(found.number, r.number);
	EXPECT_EQ(found.fd, r.fd);
	host_registration_drop(&found);
	EXPECT(host_registration_is_current(&r));
	host_registration_drop(&r);
	host_registration_unmap(p);
}

TEST(by_module_kept, "The pages are kept for later registrations, until an invalidation.")
{
	uintptr_t p = host_registration_map();
	struct host_registration r;
	struct cache_stats stats, before;
	int exports;

	export_stats(&before);
	r = host_registration_of(p, SIZE);
	exports = fake_gdmabuf.exports;
	host_registration_drop(&r);
	r = host_registration_of(p, SIZE);
	EXPECT_EQ(fake_gdmabuf.exports, exports);
	host_registration_drop(&r);
	export_stats(&stats);
	EXPECT_EQ(stats.bytes_idle, before.bytes_idle + SIZE);
	export_invalidate(p, 1);
	export_stats(&stats);
	EXPECT_EQ(stats.bytes_idle, before.bytes_idle);
	host_registration_unmap(p);
}

TEST(descriptor, "Where nothing is kept, the last put of a registration by the module closes the "
		 "descriptor and ends the watch.")
{
	uintptr_t p = host_registration_map();
	struct host_registration r, found;
	int fds, watches = fake_gdmabuf.watches;

	registration_set_limits(false, 0, UINT64_MAX);
	r = host_registration_of(p, SIZE);
	fds = process_count_descriptors();
	EXPECT_EQ(fake_gdmabuf.watches, watches + 1);
	EXPECT(host_registration_find(p, PAGE, &found));
	host_registration_drop(&found);
	EXPECT_EQ(process_count_descriptors(), fds);
	host_registration_drop(&r);
	EXPECT_EQ(process_count_descriptors(), fds - 1);
	EXPECT_EQ(fake_gdmabuf.watches, watches);
	registration_set_limits(false, UINT64_MAX, UINT64_MAX);
	host_registration_unmap(p);
}

TEST(of_kept, "A registration of a part of what an export has registered is of all of it.")
{
	uintptr_t p = host_registration_map();
	struct host_registration r;
	struct export_range range;
	struct stat st, dmabuf;

	EXPECT_EQ(export_dmabuf(p, SIZE, EXPORT_KEEP, &range), 0);
	r = host_registration_of(p + PAGE, PAGE);
	EXPECT_EQ(r.base, p);
	EXPECT_EQ(r.size, SIZE);
	EXPECT(!fstat(range.fd, &dmabuf) && !fstat(r.fd, &st));
	EXPECT_EQ(st.st_ino, dmabuf.st_ino);
	close(range.fd);
	host_registration_drop(&r);
	host_registration_unmap(p);
}

TEST(many_held, "More registrations may be held than are kept.")
{
	enum { HELD = 100 };
	struct host_registration held[HELD];
	uintptr_t p[HELD];

	registration_set_limits(false, UINT64_MAX, 10);
	for (int i = 0; i < HELD; i++) {
		p[i] = host_registration_map();
		held[i] = host_registration_of(p[i], SIZE);
	}
	for (int i = 0; i < HELD; i++) {
		EXPECT(host_registration_is_current(&held[i]));
		host_registration_drop(&held[i]);
	}
	EXPECT_EQ(fake_gdmabuf_pinned(), 10 * SIZE);
	registration_set_limits(false, UINT64_MAX, UINT64_MAX);
	for (int i = 0; i < HELD; i++)
		host_registration_unmap(p[i]);
	EXPECT_EQ(fake_gdmabuf_pinned(), 0);
}

TEST(descriptor_reused,
     "If the program has closed the descriptor and opened another file, the file stays open.")
{
	uintptr_t p = host_registration_map();
	struct host_registration r = host_registration_of(p, SIZE);
	int fd;

	close(r.fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	EXPECT_EQ(fd, r.fd);
	host_registration_drop(&r);
	EXPECT(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	host_registration_unmap(p);
}

TEST(stale, "If the status word has changed, the next call makes another registration.")
{
	uintptr_t p = host_registration_map();
	struct host_registration old = host_registration_of(p, SIZE), new;

	fake_gdmabuf_change((void *)p, SIZE);
	EXPECT(!host_registration_is_current(&old));
	EXPECT(!host_registration_find(p, PAGE, &new));
	new = host_registration_of(p, SIZE);
	EXPECT(new.number != old.number);
	host_registration_drop(&old);
	EXPECT(host_registration_is_current(&new));
	host_registration_drop(&new);
	host_registration_unmap(p);
}

static const struct host_registration_error {
	const char *name;
	int error;
} host_registration_errors[] = {
	{ "enomem", ENOMEM }, { "emfile", EMFILE }, { "edquot", EDQUOT },
	{ "efault", EFAULT }, { "eacces", EACCES }, { "eintr", EINTR },
};

TEST_EACH(module_error, struct host_registration_error, host_registration_errors,
	  "An error of the module is the registration's error, and nothing is left.")
{
	uintptr_t p = host_registration_map();
	struct host_registration found = host_registration_of(p, PAGE);
	struct registration registration;
	int fds = process_count_descriptors();

	fake_gdmabuf.error = row->error;
	EXPECT_EQ(export_register(p, SIZE, &registration), -row->error);
	fake_gdmabuf.error = 0;
	EXPECT_EQ(process_count_descriptors(), fds);
	host_registration_drop(&found);
	EXPECT(!host_registration_find(p, PAGE, &found));
	host_registration_unmap(p);
}

static int host_registration_open_error;

/* The descriptors that the library keeps are there before the count. */
static void host_registration_promise(void)
{
	uintptr_t p = host_registration_map();
	struct host_registration r;
	int fds;

	fake_gdmabuf_child();
	fake_gdmabuf.open_error = host_registration_open_error;
	r = host_registration_of(p, SIZE);
	host_registration_drop(&r);
	fds = process_count_descriptors();
	log_clear();
	r = host_registration_of(p, SIZE);
	EXPECT(!*log_last());
	EXPECT_EQ(r.fd, -1);
	EXPECT(!r.status);
	EXPECT(host_registration_is_current(&r));
	EXPECT_EQ(process_count_descriptors(), fds);
	host_registration_drop(&r);
}

static const struct host_registration_error no_module_errors[] = {
	{ "enoent", ENOENT }, { "enxio", ENXIO }, { "enodev", ENODEV },
	{ "eacces", EACCES }, { "eperm", EPERM },
};

TEST_EACH(no_module, struct host_registration_error, no_module_errors,
	  "If the process cannot open the module, the registration is a promise, and no fault is "
	  "logged.")
{
	host_registration_open_error = row->error;
	test_in_child(host_registration_promise);
}

static void host_registration_no_descriptor(void)
{
	uintptr_t p = host_registration_map();
	struct registration registration;

	fake_gdmabuf_child();
	fake_gdmabuf.open_error = host_registration_open_error;
	EXPECT_EQ(export_register(p, SIZE, &registration), -host_registration_open_error);
}

static const struct host_registration_error lack_errors[] = {
	{ "emfile", EMFILE },
	{ "enfile", ENFILE },
	{ "enomem", ENOMEM },
};

TEST_EACH(
	lack, struct host_registration_error, lack_errors,
	"If the module cannot be opened for a lack of the moment, the registration has the error.")
{
	host_registration_open_error = row->error;
	test_in_child(host_registration_no_descriptor);
}

TEST(put_ends, "The last put ends a registration: copies are not current, and the owner is told.")
{
	uintptr_t p = host_registration_map();
	struct host_registration r = host_registration_of(p, SIZE), copy, found;

	EXPECT(host_registration_look(p + PAGE, PAGE, &copy));
	EXPECT(host_registration_find(p, PAGE, &found));
	host_registration_drop(&r);
	EXPECT(host_registration_is_current(&copy));
	EXPECT_EQ(host_registration_ends, 0);
	host_registration_drop(&found);
	EXPECT(!host_registration_is_current(&copy));
	EXPECT(!host_registration_look(p, PAGE, &copy));
	EXPECT_EQ(host_registration_ends, 1);
	EXPECT_EQ(host_registration_ended_at, p);
	host_registration_unmap(p);
}

TEST(put_twice, "A put of an ended registration does nothing to a registration in the same slot.")
{
	uintptr_t p = host_registration_map();
	struct host_registration old = host_registration_of(p, SIZE), new;

	host_registration_drop(&old);
	new = host_registration_of(p, SIZE);
	EXPECT(new.slot == old.slot);
	host_registration_drop(&old);
	EXPECT(host_registration_is_current(&new));
	host_registration_drop(&new);
	host_registration_unmap(p);
}

TEST(invalidation_ends, "An invalidation ends a registration with users, and the owner is told.")
{
	uintptr_t p = host_registration_map();
	struct host_registration r = host_registration_of(p, SIZE), found;

	export_invalidate(p + SIZE, PAGE);
	EXPECT(host_registration_is_current(&r));
	host_registration_ends = 0;
	export_invalidate(p + SIZE - 1, 1);
	EXPECT(!host_registration_is_current(&r));
	EXPECT(!host_registration_find(p, PAGE, &found));
	EXPECT_EQ(host_registration_ends, 1);
	EXPECT(fcntl(r.fd, F_GETFD) >= 0);
	host_registration_drop(&r);
	host_registration_unmap(p);
}

TEST(not_mapped, "A range that is not mapped is -EFAULT, and the sentence says where.")
{
	uintptr_t p = host_registration_map();
	struct registration registration;
	char text[64];

	munmap((void *)(p + PAGE), PAGE);
	EXPECT_EQ(export_register(p, SIZE, &registration), -EFAULT);
	snprintf(text, sizeof(text), "host memory at %#zx is not mapped", (size_t)(p + PAGE));
	EXPECT(strstr(log_last(), text));
	host_registration_unmap(p);
}

TEST(read_only, "A range without write access is -EACCES, and the sentence says where.")
{
	uintptr_t p = host_registration_map();
	struct registration registration;
	char text[64];

	EXPECT(!mprotect((void *)(p + PAGE), PAGE, PROT_READ));
	EXPECT_EQ(export_register(p, SIZE, &registration), -EACCES);
	snprintf(text, sizeof(text), "%#zx is mapped without write access", (size_t)(p + PAGE));
	EXPECT(strstr(log_last(), text));
	host_registration_unmap(p);
}

TEST(not_pinnable, "Memory that no device pins is -EOPNOTSUPP, and the sentence names the file.")
{
	struct registration registration;
	char path[] = "host_registration-XXXXXX";
	int fd = mkstemp(path), error;
	void *p;

	EXPECT(fd >= 0);
	EXPECT(!ftruncate(fd, PAGE));
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unlink(path);
	close(fd);
	EXPECT(p != MAP_FAILED);
	error = export_register((uintptr_t)p, PAGE, &registration);
	if (!error)
		test_skip("the working directory is on no disk");
	EXPECT_EQ(error, -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "host_registration-"));
	EXPECT(strstr(log_last(), "which no device pins"));
	munmap(p, PAGE);
}

static uintptr_t host_registration_shared;
static atomic_bool host_registration_is_over;

static void *host_registration_look_on(void *unused)
{
	struct host_registration found;

	(void)unused;
	while (!atomic_load(&host_registration_is_over)) {
		if (host_registration_find(host_registration_shared + PAGE, PAGE, &found))
			host_registration_drop(&found);
		host_registration_look(host_registration_shared, 2 * SIZE, &found);
	}
	return NULL;
}

/* Users of the promise in between are the threads' own, and end before the check. */
TEST(ordered, "While threads look for a promise, the promise ends with its last put.")
{
	enum { THREADS = 3, ROUNDS = 20000 };
	pthread_t threads[THREADS];
	int found_again = 0;

	host_registration_shared = host_registration_map();
	atomic_store(&host_registration_is_over, false);
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, host_registration_look_on, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		struct host_registration r = host_registration_of(host_registration_shared, PAGE);

		host_registration_drop(&r);
		found_again += host_registration_is_current(&r);
	}
	atomic_store(&host_registration_is_over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(found_again, 0);
	host_registration_unmap(host_registration_shared);
}

/* The main thread is a user all the time, so every thread finds the one registration. */
static void *host_registration_use(void *unused)
{
	enum { ROUNDS = 20000 };
	struct host_registration found;

	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		EXPECT(host_registration_find(host_registration_shared + PAGE, PAGE, &found));
		EXPECT_EQ(found.base, host_registration_shared);
		host_registration_drop(&found);
	}
	return NULL;
}

TEST(shared, "Threads that use one registration end it once, with the last put, and count as hits.")
{
	enum { THREADS = 3, ROUNDS = 20000 };
	struct cache_stats before = { 0 }, after = { 0 };
	struct host_registration r;

	host_registration_shared = host_registration_map();
	r = host_registration_of(host_registration_shared, SIZE);
	host_registration_add_stats(&before);
	process_run_threads(THREADS, host_registration_use);
	host_registration_add_stats(&after);
	EXPECT_EQ(after.hits - before.hits, (uint64_t)THREADS * ROUNDS);
	EXPECT(host_registration_is_current(&r));
	EXPECT_EQ(host_registration_ends, 0);
	host_registration_drop(&r);
	EXPECT_EQ(host_registration_ends, 1);
	host_registration_unmap(host_registration_shared);
}

TEST(stale_inside, "A part whose pages have changed does not hide a registration of the whole.")
{
	uintptr_t p = host_registration_map();
	struct host_registration part = host_registration_of(p, PAGE), whole, found;

	fake_gdmabuf_change((void *)p, PAGE);
	whole = host_registration_of(p, SIZE);
	EXPECT(!host_registration_is_current(&part));
	EXPECT(host_registration_look(p, PAGE, &found));
	EXPECT_EQ(found.number, whole.number);
	EXPECT(host_registration_find(p, PAGE, &found));
	EXPECT_EQ(found.number, whole.number);
	host_registration_drop(&found);
	host_registration_drop(&part);
	host_registration_drop(&whole);
	host_registration_unmap(p);
}

/* One granule of the table, several, and all of the table. */
static const struct host_registration_reach {
	const char *name;
	size_t offset, size;
} reaches[] = {
	{ "first_byte", 0, 1 },	       { "last_byte", LARGE - 1, 1 },
	{ "inside", LARGE / 2, 100 },  { "half", LARGE / 2, 4 * LARGE },
	{ "everything", 0, SIZE_MAX }, { "wrapping", LARGE - 1, SIZE_MAX - LARGE },
};

TEST_EACH(reach, struct host_registration_reach, reaches,
	  "An invalidation ends a large registration that the range touches anywhere, and no "
	  "neighbour that the range does not touch.")
{
	const size_t size = LARGE + 2 * PAGE;
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const uintptr_t p = (uintptr_t)map + PAGE;
	struct host_registration r, before;

	EXPECT(map != MAP_FAILED);
	before = host_registration_of(p - PAGE, PAGE);
	r = host_registration_of(p, LARGE);
	host_registration_invalidate(p + row->offset, row->size);
	EXPECT(!host_registration_is_current(&r));
	EXPECT(!host_registration_look(p + LARGE / 2, 1, &r));
	EXPECT_EQ(host_registration_is_current(&before), row->size < SIZE_MAX / 2);
	host_registration_drop(&before);
	host_registration_drop(&r);
	export_invalidate(0, SIZE_MAX);
	munmap(map, size);
}

static struct host_registration host_registration_inherited;
static uintptr_t host_registration_at;

static void host_registration_in_child(void)
{
	struct host_registration found, own;

	fake_gdmabuf_child();
	EXPECT(!host_registration_is_current(&host_registration_inherited));
	EXPECT(!host_registration_find(host_registration_at, PAGE, &found));
	own = host_registration_of(host_registration_at, SIZE);
	EXPECT(own.number != host_registration_inherited.number);
	host_registration_drop(&host_registration_inherited);
	EXPECT(fcntl(host_registration_inherited.fd, F_GETFD) >= 0);
	EXPECT(host_registration_is_current(&own));
	host_registration_drop(&own);
}

TEST(forked, "A child has none of the parent's registrations, and leaves them alone.")
{
	host_registration_at = host_registration_map();
	host_registration_inherited = host_registration_of(host_registration_at, SIZE);
	test_in_child(host_registration_in_child);
	EXPECT(host_registration_is_current(&host_registration_inherited));
	host_registration_drop(&host_registration_inherited);
	host_registration_unmap(host_registration_at);
}
