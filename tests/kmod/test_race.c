/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races: threads free, allocate, export, map, read, close, revoke, drop, evict and import, all on a
 * few shared ranges.  GDM_ROUNDS is the number of rounds of all threads together.
 */
#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 6, VIEWS = 4, RECENT = 16, PAGES_GPU = 2 * GPU_PAGE, PAGES_HOST = 16 * PAGE };

/*
 * A range of memory, replaced again and again.  @turn is odd during a replacement, and each
 * replacement adds 2.  Every page begins with race_word() of the even turn.  If a thread reads
 * equal, even turns before and after an export, the export is of the memory of the turn.
 */
struct slot {
	_Atomic uint64_t turn, address;
};

/* A dma-buf of a thread, and a mapping of the dma-buf. */
struct view {
	struct gdm_export e;
	struct slot *slot;
	uint32_t flags;
	uint64_t turn; /* of the exported memory; 0 is unknown */
	uint64_t address;
	unsigned char *map;
	size_t length;
};

static _Alignas(
	PAGE) struct slot slots[SLOTS]; /* on a single page: fork() copies all slots at once */
static _Atomic uint64_t recent[RECENT]; /* slot << 32 | generation */
static atomic_long rounds;
static int gpu, ctx;

/* The first failed check of all threads. */
static struct {
	atomic_int line;
	const char *what;
	_Atomic long long got, want;
} failure;

static void race_fail(int line, const char *what, long long got, long long want)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&failure.line, &none, line)) {
		failure.what = what;
		failure.got = got;
		failure.want = want;
	}
	atomic_store(&rounds, 0);
}

#define CHECK_EQ(value, expected)                                              \
	do {                                                                   \
		long long v_ = (long long)(value), x_ = (long long)(expected); \
		if (v_ != x_)                                                  \
			race_fail(__LINE__, #value, v_, x_);                   \
	} while (0)
#define CHECK(condition) CHECK_EQ(!!(condition), 1)

static int next_round(void)
{
	return atomic_fetch_sub(&rounds, 1) > 0;
}

static long wanted_rounds(void)
{
	const char *text = getenv("GDM_ROUNDS");

	return text ? atol(text) : 20000;
}

static _Thread_local uint64_t seed;

static uint32_t race_any(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

static uint64_t race_word(const struct slot *slot, uint64_t turn)
{
	return 0xca00000000000000ULL | (uint64_t)(slot - slots) << 48 | turn;
}

/* ---- memory under revocation or unmapping ---- */

static _Thread_local sigjmp_buf jump;
static _Thread_local volatile sig_atomic_t may_fault;

static void race_on_fault(int number)
{
	if (!may_fault) {
		signal(number, SIG_DFL);
		raise(number);
	}
	siglongjmp(jump, number);
}

static void catch_faults(void)
{
	struct sigaction action = { .sa_handler = race_on_fault, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
}

/* Returns the signal of the read, or 0. */
static int read_word(const volatile void *p, uint64_t *value)
{
	int number = sigsetjmp(jump, 0);

	if (!number) {
		may_fault = 1;
		*value = *(const volatile uint64_t *)p;
	}
	may_fault = 0;
	return number;
}

static int write_word(volatile void *p, uint64_t value)
{
	int number = sigsetjmp(jump, 0);

	if (!number) {
		may_fault = 1;
		*(volatile uint64_t *)p = value;
	}
	may_fault = 0;
	return number;
}

/* ---- calls on dma-bufs ---- */

static void race_remember(const struct gdm_export *e)
{
	atomic_store(&recent[race_any(RECENT)], (uint64_t)e->slot << 32 | e->generation);
}

static struct gdm_export race_recall(void)
{
	uint64_t id = atomic_load(&recent[race_any(RECENT)]);

	return (struct gdm_export){ -1, (uint32_t)(id >> 32), (uint32_t)id };
}

static void race_view_close(struct view *v)
{
	if (v->map)
		CHECK_EQ(munmap(v->map, v->length), 0);
	if (v->slot)
		CHECK_EQ(close(v->e.fd), 0);
	memset(v, 0, sizeof(*v));
}

static int may_go(const struct view *v)
{
	return v->flags & GDMABUF_REVOCABLE;
}

/* A mapping shows the exported memory or gives SIGBUS, and never shows other memory. */
static void race_view_read(const struct view *v)
{
	uint64_t value = 0;
	int number;

	if (!v->map)
		return;
	number = read_word(v->map + (size_t)race_any(v->length / PAGE) * PAGE, &value);
	if (number) {
		CHECK_EQ(number, SIGBUS);
		CHECK(may_go(v));
	} else if (v->turn) {
		CHECK_EQ(value, race_word(v->slot, v->turn));
	}
}

static void view_query(const struct view *v)
{
	struct gdmabuf_query q = { .size = sizeof(q), .fd = v->e.fd };

	CHECK_EQ(gdm_call(ctx, GDMABUF_QUERY, &q), 0);
	CHECK_EQ(q.out_slot, v->e.slot);
	CHECK_EQ(q.out_length, v->length);
}

static void race_view_map(struct view *v)
{
	int prot = v->flags & GDMABUF_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE;

	v->map = dmabuf_map(v->e.fd, v->length, prot);
	if (!v->map)
		CHECK(errno == ENODEV && may_go(v));
}

/* Enters a new export of @slot.  @turn was the slot's turn before the export. */
static void view_is(struct view *v, struct slot *slot, uint64_t turn)
{
	v->slot = slot;
	if (!(turn & 1) && turn == atomic_load(&slot->turn))
		v->turn = turn;
	race_remember(&v->e);
	race_view_map(v);
}

/* ---- GPU memory ---- */

static void gpu_slot_new(struct slot *slot)
{
	static _Thread_local uint64_t bytes[PAGES_GPU / sizeof(uint64_t)];
	uint64_t turn = atomic_load(&slot->turn) + 1, va;

	for (size_t i = 0; i < PAGES_GPU / sizeof(uint64_t); i += PAGE / sizeof(uint64_t))
		bytes[i] = race_word(slot, turn);
	struct mock_alloc alloc = { .length = PAGES_GPU, .flags = race_any(4) ? 0 : MOCK_SCATTER };

	CHECK_EQ(ioctl(gpu, MOCK_ALLOC, &alloc), 0);
	va = alloc.va;
	struct mock_copy copy = {
		.va = va,
		.user = (uintptr_t)bytes,
		.length = PAGES_GPU,
		.to_gpu = 1,
	};

	CHECK_EQ(ioctl(gpu, MOCK_COPY, &copy), 0);
	atomic_store(&slot->address, va);
	atomic_store(&slot->turn, turn);
}

static void gpu_slot_free(struct slot *slot)
{
	atomic_fetch_add(&slot->turn, 1);
	CHECK_EQ(mockgpu_try_free(gpu, atomic_load(&slot->address),
				  race_any(2) ? MOCK_FREE_BY_THREAD : 0),
		 0);
}

static int gpu_error_is_expected(int err)
{
	/* The memory is freed or being freed, or other pins leave no room. */
	return err == -EFAULT || err == -ENOSPC || err == -ENOMEM;
}

static void gpu_view_open(struct view *v)
{
	static const uint32_t flags[] = { 0, GDMABUF_KEEP, GDMABUF_REVOCABLE, GDMABUF_REVOCABLE,
					  GDMABUF_REVOCABLE | GDMABUF_KEEP };
	struct slot *slot = &slots[race_any(SLOTS)];
	uint64_t turn = atomic_load(&slot->turn);
	int err, part = !race_any(4);

	v->flags = flags[race_any(sizeof(flags) / sizeof(flags[0]))];
	v->length = part ? GPU_PAGE : PAGES_GPU;
	v->address = atomic_load(&slot->address) + (part ? GPU_PAGE : 0);
	err = gdm_export_gpu(ctx, v->address, v->length, v->flags, &v->e);
	if (err) {
		CHECK(gpu_error_is_expected(err) || (printf("# export: %d\n", err), 0));
		return;
	}
	view_is(v, slot, turn);
}

static void *gpu_allocator(void *arg)
{
	seed = (uintptr_t)arg * 7919;
	while (next_round()) {
		struct slot *slot = &slots[(uintptr_t)arg % 2 + 2 * race_any(SLOTS / 2)];

		gpu_slot_free(slot);
		if (race_any(2))
			usleep(race_any(300));
		gpu_slot_new(slot);
		if (race_any(2))
			usleep(race_any(2000));
	}
	return NULL;
}

static void *gpu_exporter(void *arg)
{
	struct view views[VIEWS] = { 0 };

	seed = (uintptr_t)arg * 7919;
	while (next_round()) {
		struct view *v = &views[race_any(VIEWS)];

		if (!v->slot) {
			gpu_view_open(v);
			race_view_read(v);
			continue;
		}
		switch (race_any(7)) {
		case 0:
		case 1:
			race_view_close(v);
			break;
		case 2:
			view_query(v);
			break;
		default:
			race_view_read(v);
		}
	}
	for (int i = 0; i < VIEWS; i++)
		race_view_close(&views[i]);
	return NULL;
}

/* Drops and evicts pins in use by other threads. */
static void *race_evictor(void *arg)
{
	seed = (uintptr_t)arg * 7919;
	while (next_round()) {
		struct gdm_export e = race_recall();
		uint32_t kind = race_any(2) ? GDMABUF_KIND_GPU : GDMABUF_KIND_HOST;
		int err;

		switch (race_any(3)) {
		case 0:
			err = gdm_drop(ctx, &e);
			CHECK(err == 0 || err == -EBUSY || err == -ENOENT);
			break;
		case 1:
			CHECK_EQ(gdm_budget(ctx, kind, 0, NULL), 0);
			break;
		default:
			CHECK_EQ(gdm_budget(ctx, kind, UINT64_MAX, NULL), 0);
			usleep(race_any(1000));
		}
	}
	return NULL;
}

static int importer = -1, importer_imports_host;

static void race_import(const struct view *v)
{
	struct gdmabuf_importer_map map;
	int dynamic = race_any(2), err;

	err = test_importer_attach(
		importer, v->e.fd, dynamic ? GDMABUF_IMPORTER_DYNAMIC : GDMABUF_IMPORTER_STATIC,
		GDMABUF_IMPORTER_PLATFORM_DEVICE | (dynamic ? GDMABUF_IMPORTER_PEER2PEER : 0),
		GDMABUF_IMPORTER_BIDIRECTIONAL);
	if (err) {
		CHECK(err == -EOPNOTSUPP || err == -EACCES);
		return;
	}
	for (int i = 1 + (int)race_any(3); i; i--) {
		err = test_importer_map(importer, &map);
		if (err) {
			CHECK(err == -EACCES || (printf("# importer_map: %d\n", err), 0));
			break;
		}
		CHECK_EQ(map.out_length, v->length);
		if (race_any(2))
			usleep(race_any(500));
		CHECK_EQ(importer_call(importer, GDMABUF_IMPORTER_UNMAP, 0), 0);
	}
	CHECK_EQ(importer_call(importer, GDMABUF_IMPORTER_DETACH, 0), 0);
}

static void host_view_open(struct view *v);

static void *import_thread(void *arg)
{
	seed = (uintptr_t)arg * 7919;
	while (next_round()) {
		struct view v = { 0 };

		if (importer_imports_host)
			host_view_open(&v);
		else
			gpu_view_open(&v);
		if (v.slot)
			race_import(&v);
		race_view_close(&v);
	}
	return NULL;
}

/* ---- host memory ---- */

static void host_fill(unsigned char *at, const struct slot *slot, uint64_t turn)
{
	for (size_t i = 0; i < PAGES_HOST; i += PAGE)
		*(volatile uint64_t *)(at + i) = race_word(slot, turn);
}

/*
 * Maps the memory of a slot.  The last two slots are shared mappings of files, the other slots are
 * private.
 */
static unsigned char *host_map(const struct slot *slot, void *at)
{
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *p;

	if (slot >= slots + SLOTS - 2) {
		fd = memfd_create("slot", MFD_CLOEXEC);
		CHECK(fd >= 0 && !ftruncate(fd, PAGES_HOST));
		flags = MAP_SHARED;
	}
	if (at)
		flags |= MAP_FIXED;
	p = mmap(at, PAGES_HOST, PROT_READ | PROT_WRITE, flags, fd, 0);
	CHECK(p != MAP_FAILED);
	if (fd >= 0)
		close(fd);
	return p;
}

/* Gives the address other pages, or the pages a new address. */
static unsigned char *host_change(const struct slot *slot, unsigned char *at)
{
	void *other;

	switch (race_any(4)) {
	case 0:
		return host_map(slot, at);
	case 1:
		CHECK_EQ(munmap(at, PAGES_HOST), 0);
		return host_map(slot, NULL);
	case 2:
		if (slot >= slots + SLOTS - 2)
			return host_map(slot, at);
		CHECK_EQ(madvise(at, PAGES_HOST, MADV_DONTNEED), 0);
		return at;
	default:
		other = mmap(NULL, PAGES_HOST, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(other != MAP_FAILED);
		CHECK(mremap(at, PAGES_HOST, PAGES_HOST, MREMAP_MAYMOVE | MREMAP_FIXED, other) ==
		      other);
		/*
		 * Moved pages are still the exported pages and must not be written, so the slot
		 * gets new pages.
		 */
		return host_map(slot, other);
	}
}

static void *host_remapper(void *arg)
{
	seed = (uintptr_t)arg * 7919;
	while (next_round()) {
		struct slot *slot = &slots[(uintptr_t)arg % 2 + 2 * race_any(SLOTS / 2)];
		uint64_t turn = atomic_fetch_add(&slot->turn, 1) + 2;
		unsigned char *at = host_change(slot, (unsigned char *)atomic_load(&slot->address));

		host_fill(at, slot, turn);
		atomic_store(&slot->address, (uintptr_t)at);
		atomic_store(&slot->turn, turn);
		if (race_any(2))
			usleep(race_any(3000));
	}
	return NULL;
}

static void host_view_open(struct view *v)
{
	struct slot *slot = &slots[race_any(SLOTS)];
	uint64_t turn = atomic_load(&slot->turn);
	size_t skip = (size_t)race_any(4) * PAGE;
	int err;

	v->flags = (race_any(2) ? GDMABUF_KEEP : 0) | (race_any(3) ? 0 : GDMABUF_READ_ONLY);
	v->length = PAGES_HOST - skip;
	v->address = atomic_load(&slot->address) + skip;
	err = gdm_export_host(ctx, (void *)(uintptr_t)v->address, v->length, v->flags, &v->e);
	if (err) {
		CHECK(err == -EFAULT || err == -EAGAIN || err == -EACCES ||
		      (printf("# export: %d\n", err), 0));
		return;
	}
	view_is(v, slot, turn);
}

/*
 * As long as the slot's turn is the turn of the export, a write to the dma-buf arrives at the
 * address.
 */
static void host_write(const struct view *v, unsigned int thread)
{
	size_t at = (size_t)race_any(v->length / PAGE) * PAGE + 64 + 8 * thread;
	uint64_t value = seed, seen = 0;

	if (!v->turn || v->flags & GDMABUF_READ_ONLY)
		return;
	CHECK_EQ(write_word(v->map + at, value), 0);
	if (!read_word((void *)(uintptr_t)(v->address + at), &seen) &&
	    atomic_load(&v->slot->turn) == v->turn)
		CHECK_EQ(seen, value);
}

static void *host_exporter(void *arg)
{
	struct view views[VIEWS] = { 0 };

	seed = (uintptr_t)arg * 7919;
	while (next_round()) {
		struct view *v = &views[race_any(VIEWS)];

		if (!v->slot)
			host_view_open(v);
		else if (!race_any(4))
			race_view_close(v);
		else if (!race_any(4))
			view_query(v);
		else if (race_any(2))
			host_write(v, (unsigned int)(uintptr_t)arg);
		else
			race_view_read(v);
	}
	for (int i = 0; i < VIEWS; i++)
		race_view_close(&views[i]);
	return NULL;
}

/* A child writes to all private slots: the parent's pages must stay unchanged. */
static void race_child(void)
{
	struct gdmabuf_stats s = { .size = sizeof(s) };

	if (gdm_call(ctx, GDMABUF_STATS, &s) != -EACCES)
		_exit(1);
	/*
	 * A slot in the middle of a replacement may have shared memory, so the child skips the
	 * slot.
	 */
	for (int i = 0; i < SLOTS - 2; i++)
		for (size_t at = 0; !(slots[i].turn & 1) && at < PAGES_HOST; at += PAGE)
			write_word((void *)(uintptr_t)(atomic_load(&slots[i].address) + at), 666);
	_exit(0);
}

static void *race_forker(void *arg)
{
	seed = (uintptr_t)arg * 7919;
	while (next_round()) {
		int status = -1;
		pid_t pid = fork();

		if (!pid)
			race_child();
		CHECK(pid > 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		usleep(race_any(5000));
	}
	return NULL;
}

/* ---- the tests ---- */

/* Runs a thread for each body, up to a NULL, and waits. */
static void run_threads(void *(*const bodies[])(void *))
{
	pthread_t threads[16];
	size_t n = 0;

	catch_faults();
	memset(&failure, 0, sizeof(failure));
	atomic_store(&rounds, wanted_rounds());
	for (; bodies[n]; n++)
		EXPECT_EQ(pthread_create(&threads[n], NULL, bodies[n], (void *)(n + 1)), 0);
	for (size_t i = 0; i < n; i++)
		EXPECT_EQ(pthread_join(threads[i], NULL), 0);
	if (failure.line)
		test_fail(__FILE__, failure.line, failure.what, failure.got, failure.want);
}

static void race_start(void)
{
	ctx = gdm_open();
	memset(slots, 0, sizeof(slots));
	memset(recent, 0, sizeof(recent));
}

/* Checks that no pin is left.  A budget of 0 evicts the kept pins. */
static void nothing_is_left(void)
{
	struct gdmabuf_stats s = gdm_stats(ctx);

	printf("# %llu exports, %llu hits, %llu evictions, %llu stale, %llu revoked\n",
	       (unsigned long long)s.out_exports, (unsigned long long)s.out_hits,
	       (unsigned long long)s.out_evictions, (unsigned long long)s.out_stale,
	       (unsigned long long)s.out_revoked);
	EXPECT_EQ(gdm_budget(ctx, GDMABUF_KIND_HOST, 0, NULL), 0);
	EXPECT_EQ(gdm_budget(ctx, GDMABUF_KIND_GPU, 0, NULL), 0);
	EVENTUALLY(!gdm_stats(ctx).out_host_pins && !gdm_stats(ctx).out_host_bytes);
	EVENTUALLY(!gdm_stats(ctx).out_gpu_pins && !gdm_stats(ctx).out_gpu_bytes);
}

static void gpu_start(void)
{
	gpu = mockgpu_open();
	race_start();
	for (int i = 0; i < SLOTS; i++) {
		atomic_store(&slots[i].turn, 1);
		gpu_slot_new(&slots[i]);
	}
}

static void gpu_end(void)
{
	nothing_is_left();
	EVENTUALLY(!mockgpu_stats(gpu).pins && !mockgpu_stats(gpu).persistent);
	EXPECT_EQ(mockgpu_stats(gpu).pages_pinned, 0);
	for (int i = 0; i < SLOTS; i++)
		mockgpu_free(gpu, slots[i].address);
	EXPECT_EQ(mockgpu_stats(gpu).pages_used, 0);
	close(ctx);
	close(gpu);
}

static void gpu_race(void *(*const bodies[])(void *))
{
	gpu_start();
	run_threads(bodies);
	gpu_end();
}

TEST(race_gpu,
     "While threads free and export, a mapping of GPU memory shows the exported memory or gives "
     "SIGBUS.")
{
	static void *(*const bodies[])(void *) = { gpu_allocator, gpu_allocator, gpu_exporter,
						   gpu_exporter,  gpu_exporter,	 race_evictor,
						   NULL };

	gpu_race(bodies);
}

TEST(race_gpu_import,
     "While threads free, export and import, a mapping of GPU memory shows the exported memory "
     "or gives SIGBUS.")
{
	static void *(*const bodies[])(void *) = { gpu_allocator, gpu_exporter, import_thread,
						   race_evictor, NULL };

	importer_imports_host = 0;
	importer = test_importer_open();
	gpu_race(bodies);
	close(importer);
}

static void host_start(void)
{
	race_start();
	for (int i = 0; i < SLOTS; i++) {
		unsigned char *at = host_map(&slots[i], NULL);

		host_fill(at, &slots[i], 2);
		atomic_store(&slots[i].address, (uintptr_t)at);
		atomic_store(&slots[i].turn, 2);
	}
}

static void host_end(void)
{
	nothing_is_left();
	for (int i = 0; i < SLOTS; i++)
		munmap((void *)(uintptr_t)slots[i].address, PAGES_HOST);
	close(ctx);
}

static void host_race(void *(*const bodies[])(void *))
{
	host_start();
	run_threads(bodies);
	host_end();
}

TEST(race_host,
     "While threads remap, a valid export of host memory shows the bytes at the address.")
{
	static void *(*const bodies[])(void *) = { host_remapper, host_remapper, host_exporter,
						   host_exporter, host_exporter, race_evictor,
						   race_forker,	  NULL };

	host_race(bodies);
}

TEST(race_host_import,
     "While threads remap and a device imports, a valid export of host memory shows the bytes at "
     "the address.")
{
	static void *(*const bodies[])(void *) = { host_remapper, host_exporter, import_thread,
						   race_evictor, NULL };

	importer_imports_host = 1;
	importer = test_importer_open();
	host_race(bodies);
	close(importer);
}
