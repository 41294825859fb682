/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opaque descriptors of host memory that the program has registered, on the fakes of RM and of the
 * kernel module.
 */
#include "driver_fixture.h"
#include "fake_gdmabuf.h"
#include "fake_rm.h"
#include "harness.h"
#include "process.h"

#include "import/export/export.h"
#include "import/export/host_registration.h"
#include "import/opaque_fd/opaque_cache.h"
#include "import/opaque_fd/opaque.h"
#include "util/idle.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define SIZE (8 * PAGE)

static uintptr_t registered_map_fd(int fd, int flags)
{
	void *p;

	EXPECT(fd >= 0);
	EXPECT(!ftruncate(fd, SIZE));
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);
	EXPECT(p != MAP_FAILED);
	return (uintptr_t)p;
}

static int registered_memfd = -1;

static uintptr_t registered_map_memfd(void)
{
	if (registered_memfd >= 0)
		close(registered_memfd);
	registered_memfd = memfd_create("registered", MFD_CLOEXEC);
	return registered_map_fd(registered_memfd, MAP_SHARED);
}

static uintptr_t registered_map_private_file(void)
{
	char path[] = "registered-XXXXXX";
	int fd = mkstemp(path);
	uintptr_t p = registered_map_fd(fd, MAP_PRIVATE);

	unlink(path);
	close(fd);
	return p;
}

static uintptr_t registered_map_at(uintptr_t at, int flags)
{
	void *p = mmap((void *)at, SIZE, PROT_READ | PROT_WRITE,
		       flags | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	EXPECT(p != MAP_FAILED);
	return (uintptr_t)p;
}

static uintptr_t registered_map_shared(void)
{
	return registered_map_at(0, MAP_SHARED);
}

static uintptr_t registered_map_anonymous(void)
{
	return registered_map_at(0, MAP_PRIVATE);
}

static struct host_registration registered_of(uintptr_t address, size_t size)
{
	struct host_registration r;

	EXPECT_EQ(host_registration_make(address, size, &r), 0);
	return r;
}

static void registered_drop(const struct host_registration *r)
{
	host_registration_put(r->slot, r->number);
}

/* Without the kernel module. */
static void registered_begin(void)
{
	fake_gdmabuf.open_error = ENOENT;
	driver_begin();
}

static void registered_end(void)
{
	driver_settle(0);
	EXPECT_EQ(fake_rm.misuses, 0);
	EXPECT_EQ(fake_rm.inherited, 0);
}

#define REGISTERED_TEST(id, sentence)      \
	static void registered_##id(void); \
	TEST(id, sentence)                 \
	{                                  \
		registered_begin();        \
		registered_##id();         \
		registered_end();          \
	}                                  \
	static void registered_##id(void)

static const struct registered_kind {
	const char *name;
	uintptr_t (*map)(void);
} registered_kinds[] = {
	{ "shared", registered_map_shared },
	{ "memfd", registered_map_memfd },
	{ "private_file", registered_map_private_file },
	{ "anonymous", registered_map_anonymous },
};

TEST_EACH(kept, struct registered_kind, registered_kinds,
	  "Imports of registered memory of any kind share a single pin while the memory is "
	  "registered.")
{
	struct host_registration r;
	uintptr_t p;
	uint64_t kept;

	registered_begin();
	p = row->map();
	r = registered_of(p, SIZE);
	kept = driver_once(p, SIZE);
	EXPECT(kept);
	EXPECT_EQ(driver_once(p, SIZE), kept);
	EXPECT_EQ(fake_rm.pins_made, 1);
	registered_drop(&r);
	munmap((void *)p, SIZE);
	registered_end();
}

TEST_EACH(not_registered, struct registered_kind, registered_kinds,
	  "Memory that is not registered is pinned for each import.")
{
	uintptr_t p;

	registered_begin();
	p = row->map();
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(fake_rm.pins_made, 2);
	munmap((void *)p, SIZE);
	registered_end();
}

REGISTERED_TEST(part,
		"The import of a part pins the registration: imports of further parts pin nothing.")
{
	uintptr_t p = registered_map_shared();
	struct host_registration r = registered_of(p + PAGE, 6 * PAGE);
	struct driver_import part = driver_get(p + 2 * PAGE + 512, 1024);

	EXPECT_EQ(part.out.offset, PAGE + 512);
	EXPECT_EQ(part.out.size, 6 * PAGE);
	EXPECT_EQ(driver_once(p + PAGE, PAGE), part.out.kept);
	EXPECT_EQ(driver_once(p + 6 * PAGE, PAGE), part.out.kept);
	EXPECT_EQ(fake_rm.pins_made, 1);
	driver_put(&part);
	registered_drop(&r);
	munmap((void *)p, SIZE);
}

REGISTERED_TEST(beyond, "A range that no registration covers is pinned for each import.")
{
	uintptr_t p = registered_map_shared();
	struct host_registration low = registered_of(p, 4 * PAGE);
	struct host_registration high = registered_of(p + 4 * PAGE, 4 * PAGE);

	EXPECT_EQ(driver_once(p + 3 * PAGE, 2 * PAGE), 0);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(driver_memories(), 0);
	registered_drop(&low);
	registered_drop(&high);
	munmap((void *)p, SIZE);
}

REGISTERED_TEST(unregistered, "The last put of the registration unpins; the next import pins anew.")
{
	uintptr_t p = registered_map_shared();
	struct host_registration r = registered_of(p, SIZE), second;
	uint64_t kept = driver_once(p, SIZE);

	EXPECT(host_registration_find(p, PAGE, &second));
	registered_drop(&second);
	EXPECT_EQ(driver_memories(), 1);
	EXPECT_EQ(driver_forgotten, 0);
	registered_drop(&r);
	driver_settle(0);
	EXPECT_EQ(driver_forgotten, 1);
	EXPECT_EQ(driver_last_forgotten, kept);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(fake_rm.pins_made, 2);
	munmap((void *)p, SIZE);
}

REGISTERED_TEST(unregistered_in_use,
		"If an import is alive at the last put, the pages go with the import.")
{
	uintptr_t p = registered_map_shared();
	struct host_registration r = registered_of(p, SIZE);
	struct driver_import i = driver_get(p, SIZE);

	registered_drop(&r);
	EXPECT_EQ(driver_memories(), 1);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(driver_forgotten, 0);
	driver_put(&i);
	driver_settle(0);
	EXPECT_EQ(driver_forgotten, 1);
	munmap((void *)p, SIZE);
}

REGISTERED_TEST(registered_again,
		"Memory that is mapped at the address between two registrations is pinned anew.")
{
	uintptr_t p = registered_map_shared();

	for (int i = 0; i < 3; i++) {
		struct host_registration r = registered_of(p, SIZE);
		uint64_t kept = driver_once(p, SIZE);

		EXPECT_EQ(fake_rm.pins_made, i + 1);
		registered_drop(&r);
		driver_settle(0);
		EXPECT_EQ(driver_last_forgotten, kept);
		EXPECT_EQ(registered_map_at(p, MAP_SHARED), p);
	}
	munmap((void *)p, SIZE);
}

REGISTERED_TEST(invalidated, "climport_invalidate() of a part unpins, and ends the promise.")
{
	uintptr_t p = registered_map_shared();
	struct host_registration r = registered_of(p, SIZE);

	driver_once(p, SIZE);
	export_invalidate(p + SIZE - 1, 1);
	driver_settle(0);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	registered_drop(&r);
	munmap((void *)p, SIZE);
}

static void registered_punch(uintptr_t p)
{
	(void)p;
	EXPECT(!fallocate(registered_memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE));
}

static void registered_truncate(uintptr_t p)
{
	(void)p;
	EXPECT(!ftruncate(registered_memfd, 0));
	EXPECT(!ftruncate(registered_memfd, SIZE));
}

static void registered_map_over(uintptr_t p)
{
	EXPECT_EQ(registered_map_at(p, MAP_SHARED), p);
}

static const struct registered_breach {
	const char *name;
	void (*make)(uintptr_t p);
} registered_breaches[] = {
	{ "punch", registered_punch },
	{ "truncate", registered_truncate },
	{ "map_over", registered_map_over },
};

TEST_EACH(broken, struct registered_breach, registered_breaches,
	  "A program that breaks its promise gets the old pages, until it unregisters.")
{
	struct host_registration r;
	uint64_t kept;
	uintptr_t p;

	registered_begin();
	p = registered_map_memfd();
	r = registered_of(p, SIZE);
	kept = driver_once(p, SIZE);
	row->make(p);
	EXPECT_EQ(driver_once(p, SIZE), kept);
	registered_drop(&r);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	EXPECT_EQ(fake_rm.pins_made, 2);
	munmap((void *)p, SIZE);
	registered_end();
}

/*
 * The kernel module is there from here on.  No other test imports as many bytes: without a
 * registration, a range that was imported at this address before could be due (recent.h).
 */
static void registered_run_stale(void)
{
	const size_t size = SIZE - PAGE;
	uintptr_t p = registered_map_shared();
	struct host_registration old, new;
	uint64_t kept;

	fake_gdmabuf.open_error = 0;
	old = registered_of(p, SIZE);
	EXPECT(old.status);
	kept = driver_once(p, size);
	EXPECT_EQ(driver_once(p, size), kept);
	fake_gdmabuf_change((void *)p, SIZE);
	EXPECT_EQ(driver_once(p, size), 0);
	new = registered_of(p, SIZE);
	EXPECT(driver_once(p, size) != kept);
	EXPECT_EQ(driver_forgotten, 1);
	EXPECT_EQ(driver_last_forgotten, kept);
	registered_drop(&old);
	registered_drop(&new);
	driver_settle(0);
}

static void registered_in_own_process(void (*body)(void))
{
	fake_gdmabuf.open_error = ENOENT;
	test_in_child(body);
}

static void registered_body_stale(void)
{
	registered_begin();
	registered_run_stale();
}

TEST(stale,
     "If the module's status word says that the pages have changed, the next import pins anew.")
{
	registered_in_own_process(registered_body_stale);
}

REGISTERED_TEST(devices, "Each device has its pin, and all pins go with the registration.")
{
	uintptr_t p = registered_map_shared();
	struct host_registration r = registered_of(p, SIZE);

	for (int i = 0; i < 4; i++) {
		struct driver_import import;

		EXPECT_EQ(driver_try(p, SIZE, i % 2, &import), 0);
		driver_put(&import);
	}
	EXPECT_EQ(fake_rm.pins_made, 2);
	registered_drop(&r);
	driver_settle(0);
	EXPECT_EQ(driver_forgotten, 1);
	munmap((void *)p, SIZE);
}

REGISTERED_TEST(
	descriptors,
	"Neither an import that is alive nor a registration has a descriptor but the driver's.")
{
	uintptr_t p = registered_map_shared();
	struct host_registration r = registered_of(p, SIZE);
	int before = process_count_descriptors();
	struct driver_import i = driver_get(p, SIZE);

	EXPECT_EQ(i.out.fd, i.fd);
	EXPECT_EQ(process_count_descriptors(), before + 2);
	driver_put(&i);
	EXPECT_EQ(process_count_descriptors(), before + 1);
	driver_drop_buffers();
	EXPECT_EQ(process_count_descriptors(), before);
	registered_drop(&r);
	munmap((void *)p, SIZE);
}

REGISTERED_TEST(
	numbers,
	"A program may put other memory's descriptor at any number that an import has used: "
	"later imports are of the right memory, and no file of the program is closed.")
{
	uintptr_t p = registered_map_shared(), q = registered_map_shared();
	struct host_registration r = registered_of(p, SIZE);
	int from = dup(0), other;
	struct driver_import i;

	driver_once(p, SIZE);
	driver_drop_buffers();
	i = driver_get(q, SIZE);
	other = fcntl(i.fd, F_DUPFD_CLOEXEC, 100);
	driver_put(&i);
	close(from);
	for (int fd = from; fd < from + 16; fd++)
		EXPECT_EQ(dup2(other, fd), fd);
	driver_once(p, SIZE);
	driver_drop_buffers();
	driver_once(p, SIZE);
	registered_drop(&r);
	for (int fd = from; fd < from + 16; fd++)
		EXPECT(!close(fd));
	close(other);
	munmap((void *)p, SIZE);
	munmap((void *)q, SIZE);
}

REGISTERED_TEST(
	other_context,
	"If the driver has no buffer of the registration any more, the next import pins anew "
	"under the same name.")
{
	uintptr_t p = registered_map_shared();
	struct host_registration r = registered_of(p, SIZE);
	uint64_t kept = driver_once(p, SIZE);

	driver_drop_buffers();
	EXPECT_EQ(driver_memories(), 0);
	EXPECT_EQ(driver_once(p, SIZE), kept);
	EXPECT_EQ(fake_rm.pins_made, 2);
	registered_drop(&r);
	munmap((void *)p, SIZE);
}

REGISTERED_TEST(not_pinned,
		"If the registration as a whole cannot be pinned, an import pins its own part.")
{
	uintptr_t p = registered_map_shared();
	struct host_registration r = registered_of(p, SIZE);
	struct driver_import i;

	fake_rm.refused = (void *)p;
	i = driver_get(p + PAGE, PAGE);
	EXPECT_EQ(i.out.kept, 0);
	EXPECT_EQ(i.out.size, PAGE);
	driver_put(&i);
	fake_rm.refused = NULL;
	EXPECT_EQ(driver_once(p + PAGE, PAGE), 0);
	EXPECT(driver_once(p + PAGE, PAGE));
	registered_drop(&r);
	munmap((void *)p, SIZE);
}

REGISTERED_TEST(refused_often,
		"A hundred imports of parts ask seven times for a registration that is refused.")
{
	uintptr_t p = registered_map_shared();
	struct host_registration r = registered_of(p, SIZE);

	fake_rm.refused = (void *)p;
	fake_rm.fail_name = "pin";
	fake_rm.fail_call = 1000; /* none: the calls are counted */
	fake_rm.matched = 0;
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(driver_once(p + PAGE, PAGE), 0);
	EXPECT_EQ(fake_rm.matched, 107);
	fake_rm.fail_call = 0;
	fake_rm.refused = NULL;
	registered_drop(&r);
	munmap((void *)p, SIZE);
}

static const struct registered_refusal {
	const char *name;
	uint32_t status;
} registered_refusals[] = {
	{ "no_memory", 0x51 },
	{ "insufficient_resources", 0x1a },
	{ "operating_system", 0x59 },
	{ "invalid_address", 0x1e },
};

TEST_EACH(
	refused, struct registered_refusal, registered_refusals,
	"Whatever the device's reason not to pin a registration as a whole, an import pins its own "
	"part, and no error is logged.")
{
	struct host_registration r;
	struct driver_import i;
	uintptr_t p;

	registered_begin();
	p = registered_map_shared();
	r = registered_of(p, SIZE);
	fake_rm.fail_name = "pin";
	fake_rm.fail_status = row->status;
	fake_rm.matched = 0;
	fake_rm.fail_times = 1;
	fake_rm.fail_call = 1;
	log_clear();
	i = driver_get(p + PAGE, PAGE);
	EXPECT_EQ(fake_rm.matched, 2);
	EXPECT_EQ(i.out.kept, 0);
	EXPECT_EQ(i.out.size, PAGE);
	EXPECT(!*log_last());
	fake_rm.fail_call = 0;
	driver_put(&i);
	registered_drop(&r);
	munmap((void *)p, SIZE);
	registered_end();
}

static struct host_registration registered_held;

static void registered_drop_in_pin(void)
{
	fake_rm.hook_name = NULL;
	registered_drop(&registered_held);
}

REGISTERED_TEST(ended_in_pin,
		"If the registration ends while an import pins, the pages go with the import.")
{
	uintptr_t p = registered_map_shared();
	struct driver_import i;

	registered_held = registered_of(p, SIZE);
	fake_rm.hook_name = "pin";
	fake_rm.hook = registered_drop_in_pin;
	i = driver_get(p, SIZE);
	EXPECT_EQ(driver_once(p, SIZE), 0);
	driver_put(&i);
	driver_settle(0);
	munmap((void *)p, SIZE);
}

REGISTERED_TEST(no_descriptor,
		"Without free descriptors, pins that no import uses make room for the next.")
{
	enum { LIMIT = 128 };
	uintptr_t p = registered_map_shared();
	struct host_registration low = registered_of(p, 4 * PAGE);
	struct host_registration high = registered_of(p + 4 * PAGE, 4 * PAGE);
	struct rlimit before;
	int fds[LIMIT], count = 0;
	uint64_t kept = driver_once(p, PAGE);

	/* A pin takes a descriptor, and the driver another. */
	process_limit_descriptors(LIMIT, &before);
	while (count < LIMIT && (fds[count] = dup(0)) >= 0)
		count++;
	close(fds[--count]);
	EXPECT(driver_once(p + 4 * PAGE, PAGE));
	EXPECT_EQ(driver_last_forgotten, kept);
	while (count)
		close(fds[--count]);
	setrlimit(RLIMIT_NOFILE, &before);
	registered_drop(&low);
	registered_drop(&high);
	munmap((void *)p, SIZE);
}

static uintptr_t registered_at;

static bool registered_is_forgotten(void *unused)
{
	(void)unused;
	return driver_forgotten == 1;
}

static bool registered_has_idle_thread(void *unused)
{
	(void)unused;
	return process_find_thread("climport-idle");
}

static struct driver_import registered_left;

static void *registered_import_and_end(void *unused)
{
	registered_left = driver_get(registered_at, SIZE);
	EXPECT(process_settles(registered_has_idle_thread, NULL));
	return unused;
}

/* No address space has room for the stack. */
static void registered_refuse_threads(pthread_attr_t *before)
{
	pthread_attr_t attr;

	EXPECT(!pthread_getattr_default_np(before));
	EXPECT(!pthread_getattr_default_np(&attr));
	pthread_attr_setstacksize(&attr, SIZE_MAX / 2 + 1);
	EXPECT(!pthread_setattr_default_np(&attr));
	pthread_attr_destroy(&attr);
}

/* The idle thread ends after the only thread that has imported. */
static void registered_end_without_thread(void)
{
	static char idle[] = "climport-idle";
	pthread_attr_t attr;

	registered_begin();
	registered_at = registered_map_shared();
	registered_held = registered_of(registered_at, SIZE);
	process_run_threads(1, registered_import_and_end);
	EXPECT(process_settles(process_has_no_thread, idle));
	registered_refuse_threads(&attr);
	registered_drop(&registered_held);
	driver_put(&registered_left);
	EXPECT_EQ(driver_forgotten, 0);
	EXPECT(!pthread_setattr_default_np(&attr));
	EXPECT_EQ(idle_prepare(), 0);
	EXPECT(process_settles(registered_is_forgotten, NULL));
	registered_end();
}

TEST(ended_without_thread, "If no thread can be started for the end of a registration, the "
			   "registration ends with a later "
			   "call that starts the thread.")
{
	fake_gdmabuf.open_error = ENOENT;
	test_in_child_of_thread(registered_end_without_thread);
}

static void registered_in_child(void)
{
	struct host_registration own;

	EXPECT_EQ(driver_once(registered_at, SIZE), 0);
	own = registered_of(registered_at, SIZE);
	EXPECT(driver_once(registered_at, SIZE));
	registered_drop(&registered_held);
	EXPECT(host_registration_is_current(&own));
	registered_drop(&own);
	EXPECT(process_settles(registered_is_forgotten, NULL));
	EXPECT_EQ(fake_rm.inherited, 0);
}

REGISTERED_TEST(forked, "A child keeps nothing for the parent's registration, and leaves it alone.")
{
	uint64_t kept;

	registered_at = registered_map_shared();
	registered_held = registered_of(registered_at, SIZE);
	kept = driver_once(registered_at, SIZE);
	test_in_child(registered_in_child);
	EXPECT_EQ(driver_once(registered_at, SIZE), kept);
	registered_drop(&registered_held);
	munmap((void *)registered_at, SIZE);
}

static void registered_end_driver(void)
{
	registered_drop(&registered_held);
	_exit(driver_forgotten ? 1 : 0);
}

static void registered_exit(void)
{
	EXPECT(!atexit(registered_end_driver));
	registered_begin();
	registered_at = registered_map_shared();
	registered_held = registered_of(registered_at, SIZE);
	EXPECT(driver_once(registered_at, SIZE));
	exit(2);
}

TEST(exits,
     "If the registration ends once drivers have ended, no driver is asked to release a buffer.")
{
	registered_in_own_process(registered_exit);
}

static atomic_bool registered_is_over;
static atomic_int registered_errors;

static void *registered_import_on(void *unused)
{
	struct driver_import i;

	(void)unused;
	while (!atomic_load(&registered_is_over)) {
		if (driver_try(registered_at + PAGE, PAGE, 0, &i))
			registered_errors++;
		else
			driver_put(&i);
	}
	return NULL;
}

/* The threads' imports are of memory that is mapped all the time. */
REGISTERED_TEST(threads,
		"While threads import the memory, an import after the last put has a new pin.")
{
	enum { THREADS = 3, ROUNDS = 1000 };
	pthread_t threads[THREADS];
	uint64_t last = 0;
	int old = 0;

	registered_at = registered_map_shared();
	atomic_store(&registered_is_over, false);
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, registered_import_on, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		struct host_registration r = registered_of(registered_at, SIZE);
		uint64_t kept = driver_once(registered_at, SIZE);

		old += !kept || kept == last;
		last = kept;
		registered_drop(&r);
		old += driver_once(registered_at, SIZE) != 0;
	}
	atomic_store(&registered_is_over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(old, 0);
	EXPECT_EQ(registered_errors, 0);
	munmap((void *)registered_at, SIZE);
}
