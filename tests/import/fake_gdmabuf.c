/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_gdmabuf.h"

#include <errno.h>
#include <linux/gdmabuf.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define GPU_PAGE 65536
#define SLOTS 128
#define DEVICE "gdmabuf-device"
#define OWNER (PAGE - 4) /* offset of the opener's process id in the device's file */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);

struct fake_gdmabuf fake_gdmabuf;

enum { FAKE_WATCH = 2 };

struct pin {
	uint64_t address, length;
	uint32_t generation; /* 0: never used */
	int kind;	     /* 0: host, 1: GPU, FAKE_WATCH */
	bool kept;
};

static pthread_mutex_t watches_lock = PTHREAD_MUTEX_INITIALIZER; /* pins that are watches */
static struct pin pins[SLOTS];
static uint64_t exports, hits, evictions;
static uint32_t last; /* the last export's slot */
static uint64_t last_address;
static int last_device = -1;
static uint32_t process = 1; /* as fake_gdmabuf_child() counts */

void fake_gdmabuf_child(void)
{
	process++;
}

bool fake_gdmabuf_is_device(int fd)
{
	char path[64], target[128] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, DEVICE);
}

bool fake_gdmabuf_is_own(int fd)
{
	uint32_t owner = 0;

	return pread(fd, &owner, sizeof(owner), OWNER) == sizeof(owner) && owner == process;
}

static void fake_gdmabuf_put_word(int fd, uint32_t word, off_t at)
{
	if (pwrite(fd, &word, sizeof(word), at) != sizeof(word))
		abort();
}

void fake_gdmabuf_set_own(int fd)
{
	fake_gdmabuf_put_word(fd, process, OWNER);
}

static int fake_gdmabuf_set_errno(int error)
{
	errno = error;
	return -1;
}

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* threads may be the first at once */

int __wrap_open(const char *path, int flags, ...)
{
	int fd;

	if (strcmp(path, "/dev/gdmabuf"))
		return __real_open(path, flags, 0);
	if (fake_gdmabuf.open_error)
		return fake_gdmabuf_set_errno(fake_gdmabuf.open_error);
	fd = memfd_create(DEVICE, MFD_CLOEXEC);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, PAGE))
		abort();
	fake_gdmabuf_set_own(fd);
	pthread_mutex_lock(&opening);
	fake_gdmabuf.opens++;
	memset(pins, 0, sizeof(pins));
	memset(fake_gdmabuf.budget, 0xff, sizeof(fake_gdmabuf.budget));
	exports = hits = evictions = 0;
	pthread_mutex_unlock(&opening);
	return fd;
}

static int fake_gdmabuf_answer_caps(struct gdmabuf_caps *caps)
{
	caps->out_host_page_size = PAGE;
	caps->out_gpu_page_size = fake_gdmabuf.has_gpu ? GPU_PAGE : 0;
	caps->out_slots = SLOTS;
	caps->out_caps = GDMABUF_CAP_HOST | (fake_gdmabuf.is_old ? 0 : GDMABUF_CAP_WATCH_HOST);
	return 0;
}

static bool fake_pin_covers(const struct pin *pin, int kind, const struct gdmabuf_export *e)
{
	return pin->kept && pin->kind == kind && e->address >= pin->address &&
	       e->address + e->length <= pin->address + pin->length;
}

static uint64_t fake_pins_count_idle(int kind)
{
	uint64_t bytes = 0;

	for (int i = 0; i < SLOTS; i++)
		bytes += pins[i].kept && pins[i].kind == kind ? pins[i].length : 0;
	return bytes;
}

static void fake_pins_trim(int kind)
{
	for (int i = 0; i < SLOTS && fake_pins_count_idle(kind) > fake_gdmabuf.budget[kind]; i++) {
		evictions += pins[i].kept && pins[i].kind == kind;
		pins[i].kept = pins[i].kept && pins[i].kind != kind;
	}
}

/* Slots are taken in turn; the first export of each context has slot 0 and generation 1. */
static int fake_pins_take(int kind, const struct gdmabuf_export *e)
{
	static int next;
	int slot = 0;

	while (slot < SLOTS && !fake_pin_covers(&pins[slot], kind, e))
		slot++;
	if (slot < SLOTS) {
		hits++;
		return slot;
	}
	for (slot = 0; slot < SLOTS && pins[slot].generation;)
		slot++;
	if (slot == SLOTS)
		slot = next++ % SLOTS;
	pins[slot] = (struct pin){ e->address, e->length, pins[slot].generation + 1, kind, false };
	return slot;
}

static int fake_gdmabuf_answer_export(int device, int kind, struct gdmabuf_export *e)
{
	if (fake_gdmabuf.error)
		return fake_gdmabuf_set_errno(fake_gdmabuf.error);
	if (fake_gdmabuf.exporting)
		fake_gdmabuf.exporting();
	e->out_fd = memfd_create("gdmabuf-export", MFD_CLOEXEC);
	if (e->out_fd < 0)
		return -1;
	e->out_slot = (uint32_t)fake_pins_take(kind, e);
	e->out_generation = pins[e->out_slot].generation;
	pins[e->out_slot].kept |= e->flags & GDMABUF_KEEP;
	fake_gdmabuf.flags = e->flags;
	last = e->out_slot;
	last_address = e->address;
	last_device = device;
	exports++;
	fake_gdmabuf_put_word(device, e->flags & GDMABUF_UNWATCHED ? 0 : e->out_generation,
			      e->out_slot * 4);
	fake_pins_trim(kind);
	return 0;
}

void fake_gdmabuf_free_last(void)
{
	pins[last].generation++;
	fake_gdmabuf_put_word(last_device, pins[last].generation, last * 4);
}

/* A slot that has had a watch is taken again, with the next generation but one, as the module's. */
static int fake_gdmabuf_take_watch(int device, struct gdmabuf_watch_host *w)
{
	uint32_t slot = 0;

	if (fake_gdmabuf.watch_error)
		return fake_gdmabuf_set_errno(fake_gdmabuf.watch_error);
	while (slot < SLOTS && (pins[slot].length || pins[slot].kind == FAKE_WATCH))
		slot++;
	if (slot == SLOTS)
		return fake_gdmabuf_set_errno(ENOSPC);
	pins[slot] =
		(struct pin){ w->address, w->length, pins[slot].generation + 2, FAKE_WATCH, false };
	w->out_slot = slot;
	w->out_generation = pins[slot].generation;
	last_device = device;
	fake_gdmabuf_put_word(device, w->out_generation, slot * 4);
	fake_gdmabuf.watches++;
	return 0;
}

static int fake_gdmabuf_answer_watch(int device, struct gdmabuf_watch_host *w)
{
	int ret;

	if (fake_gdmabuf.watching)
		fake_gdmabuf.watching();
	pthread_mutex_lock(&watches_lock);
	ret = fake_gdmabuf_take_watch(device, w);
	pthread_mutex_unlock(&watches_lock);
	return ret;
}

void fake_gdmabuf_change(const void *address, uint64_t length)
{
	uint64_t first = (uintptr_t)address;

	pthread_mutex_lock(&watches_lock);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		if (pins[slot].kind == FAKE_WATCH &&
		    first < pins[slot].address + pins[slot].length &&
		    pins[slot].address < first + length)
			fake_gdmabuf_put_word(last_device, pins[slot].generation + 1, slot * 4);
	pthread_mutex_unlock(&watches_lock);
}

static int fake_gdmabuf_end_watch(int device, uint32_t slot)
{
	fake_gdmabuf_put_word(device, pins[slot].generation + 1, slot * 4);
	pins[slot] = (struct pin){ .generation = pins[slot].generation };
	fake_gdmabuf.watches--;
	return 0;
}

/* The last export is asked about, always. */
static int fake_gdmabuf_answer_query(struct gdmabuf_query *q)
{
	const struct pin *pin = &pins[last];

	q->out_generation = pin->generation;
	q->out_slot = last;
	q->out_offset = last_address - pin->address;
	q->out_address = last_address;
	q->out_pin_length = pin->length;
	return 0;
}

static int fake_gdmabuf_drop(int device, const struct gdmabuf_pin_id *id)
{
	if (id->slot >= SLOTS || pins[id->slot].generation != id->generation)
		return fake_gdmabuf_set_errno(ENOENT);
	if (pins[id->slot].kind == FAKE_WATCH)
		return fake_gdmabuf_end_watch(device, id->slot);
	pins[id->slot].kept = false;
	return 0;
}

static int fake_gdmabuf_answer_drop(int device, const struct gdmabuf_pin_id *id)
{
	int ret;

	pthread_mutex_lock(&watches_lock);
	ret = fake_gdmabuf_drop(device, id);
	pthread_mutex_unlock(&watches_lock);
	return ret;
}

static int fake_gdmabuf_answer_budget(struct gdmabuf_budget *b)
{
	int kind = b->kind == GDMABUF_KIND_GPU;

	b->out_bytes = fake_gdmabuf.budget[kind];
	fake_gdmabuf.budget[kind] = b->bytes;
	fake_pins_trim(kind);
	b->out_used = fake_pins_count_idle(kind);
	return 0;
}

static int fake_gdmabuf_answer_stats(struct gdmabuf_stats *s)
{
	s->out_host_bytes = fake_pins_count_idle(0);
	s->out_gpu_bytes = fake_pins_count_idle(1);
	s->out_exports = exports;
	s->out_hits = hits;
	s->out_evictions = evictions;
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	if (request < GDMABUF_CAPS || request > GDMABUF_WATCH_HOST)
		return __real_ioctl(fd, request, arg);
	if (!fake_gdmabuf_is_device(fd))
		return fake_gdmabuf_set_errno(ENOTTY);
	if (!fake_gdmabuf_is_own(fd))
		return fake_gdmabuf_set_errno(EACCES);
	switch (request) {
	case GDMABUF_CAPS:
		return fake_gdmabuf_answer_caps(arg);
	case GDMABUF_EXPORT_HOST:
		return fake_gdmabuf_answer_export(fd, 0, arg);
	case GDMABUF_EXPORT_GPU:
		return fake_gdmabuf_answer_export(fd, 1, arg);
	case GDMABUF_QUERY:
		return fake_gdmabuf_answer_query(arg);
	case GDMABUF_DROP:
		return fake_gdmabuf_answer_drop(fd, arg);
	case GDMABUF_WATCH_HOST:
		return fake_gdmabuf.is_old ? fake_gdmabuf_set_errno(ENOTTY)
					   : fake_gdmabuf_answer_watch(fd, arg);
	case GDMABUF_BUDGET:
		return fake_gdmabuf_answer_budget(arg);
	case GDMABUF_STATS:
		return fake_gdmabuf_answer_stats(arg);
	default:
		return fake_gdmabuf_set_errno(ENOTTY);
	}
}
