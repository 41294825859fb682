/* SPDX-License-Identifier: Apache-2.0 */
/* Races on host memory: threads remap and fork while other threads export, map, read and write. */
#include "race_fixture.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES_HOST (16 * PAGE)

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

	if (slot >= race_slots + SLOTS - 2) {
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
		if (slot >= race_slots + SLOTS - 2)
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
	race_seed(arg);
	while (race_next_round()) {
		struct slot *slot = &race_slots[(uintptr_t)arg % 2 + 2 * race_any(SLOTS / 2)];
		uint64_t turn = atomic_fetch_add(&slot->turn, 1) + 2;
		unsigned char *at =
			host_change(slot, (unsigned char *)(uintptr_t)atomic_load(&slot->address));

		host_fill(at, slot, turn);
		atomic_store(&slot->address, (uintptr_t)at);
		atomic_store(&slot->turn, turn);
		if (race_any(2))
			usleep(race_any(3000)); /* time: noise */
	}
	return NULL;
}

static void host_view_open(struct view *v)
{
	struct slot *slot = &race_slots[race_any(SLOTS)];
	uint64_t turn = atomic_load(&slot->turn);
	size_t skip = (size_t)race_any(4) * PAGE;
	int err;

	v->flags = race_any(3) ? 0 : GDMABUF_READ_ONLY;
	v->length = PAGES_HOST - skip;
	v->address = atomic_load(&slot->address) + skip;
	err = gdm_export_host(race_ctx, (void *)(uintptr_t)v->address, v->length, v->flags, &v->fd);
	if (err) {
		CHECK(err == -EFAULT || err == -EACCES || (printf("# export: %d\n", err), 0));
		return;
	}
	race_view_enter(v, slot, turn);
}

/*
 * As long as the slot's turn is the turn of the export, a write to the dma-buf arrives at the
 * address.
 */
static void host_write(const struct view *v, unsigned int thread)
{
	size_t at = (size_t)race_any(v->length / PAGE) * PAGE + 64 + 8 * thread;
	uint64_t value = race_last_random(), seen = 0;

	if (!v->turn || v->flags & GDMABUF_READ_ONLY)
		return;
	CHECK_EQ(race_write_word(v->map + at, value), 0);
	if (!race_read_word((void *)(uintptr_t)(v->address + at), &seen) &&
	    atomic_load(&v->slot->turn) == v->turn)
		CHECK_EQ(seen, value);
}

static void *host_exporter(void *arg)
{
	struct view views[VIEWS] = { 0 };

	race_seed(arg);
	while (race_next_round()) {
		struct view *v = &views[race_any(VIEWS)];

		if (!v->slot)
			host_view_open(v);
		else if (!race_any(4))
			race_view_close(v);
		else if (race_any(2))
			host_write(v, (unsigned int)(uintptr_t)arg);
		else
			race_view_read(v);
	}
	for (int i = 0; i < VIEWS; i++)
		race_view_close(&views[i]);
	return NULL;
}

/* A watch of a slot's memory, then an export, as libclimport makes both. */
struct watched_view {
	struct gdm_watch watch;
	struct view view;
};

static _Atomic long watched_current, watched_stale;

static void watched_open(struct watched_view *w)
{
	struct slot *slot = &race_slots[race_any(SLOTS)];

	w->view.address = atomic_load(&slot->address);
	w->view.length = PAGES_HOST;
	CHECK_EQ(
		gdm_watch_host(race_ctx, (void *)(uintptr_t)w->view.address, PAGES_HOST, &w->watch),
		0);
	if (gdm_export_host(race_ctx, (void *)(uintptr_t)w->view.address, PAGES_HOST, 0,
			    &w->view.fd)) {
		CHECK_EQ(gdm_unwatch(race_ctx, &w->watch), 0);
		return;
	}
	race_view_enter(&w->view, slot, 0);
}

/* As long as the watch is current, the dma-buf shows what is at the address. */
static void watched_read(struct watched_view *w, const volatile uint32_t *status)
{
	struct view *v = &w->view;
	uint64_t turn = atomic_load(&v->slot->turn), value = 0;
	size_t at = (size_t)race_any(PAGES_HOST / PAGE) * PAGE;
	int is_current;

	CHECK_EQ(race_read_word(v->map + at, &value), 0);
	is_current = gdm_is_current(status, &w->watch);
	atomic_thread_fence(memory_order_acquire);
	if (turn & 1 || atomic_load(&v->slot->turn) != turn ||
	    atomic_load(&v->slot->address) != v->address)
		return;
	if (is_current)
		CHECK_EQ(value, race_word(v->slot, turn));
	atomic_fetch_add(is_current ? &watched_current : &watched_stale, 1);
}

static void watched_close(struct watched_view *w)
{
	if (!w->view.slot)
		return;
	race_view_close(&w->view);
	CHECK_EQ(gdm_unwatch(race_ctx, &w->watch), 0);
}

static void *host_watcher(void *arg)
{
	const volatile uint32_t *status = gdm_status(race_ctx);
	struct watched_view views[VIEWS] = { 0 };

	race_seed(arg);
	while (race_next_round()) {
		struct watched_view *w = &views[race_any(VIEWS)];

		if (!w->view.slot)
			watched_open(w);
		else if (race_any(8))
			watched_read(w, status);
		else
			watched_close(w);
	}
	for (int i = 0; i < VIEWS; i++)
		watched_close(&views[i]);
	munmap((void *)(uintptr_t)status, STATUS_BYTES);
	return NULL;
}

/* A child writes to all private slots: the parent's pages must stay unchanged. */
static void race_child(void)
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };

	if (gdm_call(race_ctx, GDMABUF_CAPS, &caps) != -EACCES)
		_exit(1);
	/*
	 * A slot in the middle of a replacement may have shared memory, so the child skips the
	 * slot.
	 */
	for (int i = 0; i < SLOTS - 2; i++)
		for (size_t at = 0; !(race_slots[i].turn & 1) && at < PAGES_HOST; at += PAGE)
			race_write_word(
				(void *)(uintptr_t)(atomic_load(&race_slots[i].address) + at), 666);
	_exit(0);
}

static void *race_forker(void *arg)
{
	race_seed(arg);
	while (race_next_round()) {
		int status = -1;
		pid_t pid = fork();

		if (!pid)
			race_child();
		CHECK(pid > 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		usleep(race_any(5000)); /* time: noise */
	}
	return NULL;
}

static void *host_importer(void *arg)
{
	race_import_views(arg, host_view_open);
	return NULL;
}

static void host_start(void)
{
	race_start();
	for (int i = 0; i < SLOTS; i++) {
		unsigned char *at = host_map(&race_slots[i], NULL);

		host_fill(at, &race_slots[i], 2);
		atomic_store(&race_slots[i].address, (uintptr_t)at);
		atomic_store(&race_slots[i].turn, 2);
	}
}

static void host_end(void)
{
	race_expect_nothing_left();
	for (int i = 0; i < SLOTS; i++)
		munmap((void *)(uintptr_t)race_slots[i].address, PAGES_HOST);
	close(race_ctx);
}

static void host_race(void *(*const bodies[])(void *))
{
	host_start();
	race_run_threads(bodies);
	host_end();
}

TEST(race_host, "While threads remap, an export of host memory shows the bytes at the address.")
{
	static void *(*const bodies[])(void *) = { host_remapper, host_remapper, host_exporter,
						   host_exporter, host_exporter, race_forker,
						   NULL };

	host_race(bodies);
}

TEST(race_host_watch,
     "While threads remap, an export shows the bytes at the address as long as a watch that began "
     "before is current.")
{
	static void *(*const bodies[])(void *) = { host_remapper, host_remapper, host_watcher,
						   host_watcher,  host_watcher,	 race_forker,
						   NULL };

	host_race(bodies);
	printf("# %ld times current, %ld times stale\n", watched_current, watched_stale);
	/* Which outcomes come is up to the scheduler. */
	if (!watched_current || !watched_stale)
		test_skip("no read met a %s watch", watched_current ? "stale" : "current");
}

TEST(race_host_import,
     "While threads remap and a device imports, an export of host memory shows the bytes at the "
     "address.")
{
	static void *(*const bodies[])(void *) = { host_remapper, host_exporter, host_importer,
						   NULL };

	race_importer_open();
	host_race(bodies);
	race_importer_close();
}
