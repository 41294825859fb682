/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races: threads free, allocate, export, map, read, close, watch and import, all on a few shared
 * slots of memory.  A test names the bodies of the threads.  The fixture runs the bodies
 * until all rounds are done or a check has failed.
 *
 * GDM_ROUNDS is the number of rounds of all threads together.
 */
#ifndef TESTS_KMOD_RACE_FIXTURE_H
#define TESTS_KMOD_RACE_FIXTURE_H

#include "gdm.h"
#include "harness.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOTS = 6, VIEWS = 4 };

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
	int fd;
	struct slot *slot;
	uint32_t flags;
	uint64_t turn; /* of the exported memory; 0 is unknown */
	uint64_t address;
	unsigned char *map;
	size_t length;
};

/* All slots are on a single page, so fork() copies all slots at once. */
extern struct slot race_slots[SLOTS];
extern int race_ctx;

/* Records the failed check, unless a check failed before, and ends the rounds. */
void race_fail(const char *file, int line, const char *what, long long got, long long want);

#define CHECK_EQ(value, expected)                                              \
	do {                                                                   \
		long long v_ = (long long)(value), x_ = (long long)(expected); \
		if (v_ != x_)                                                  \
			race_fail(__FILE__, __LINE__, #value, v_, x_);         \
	} while (0)
#define CHECK(condition) CHECK_EQ(!!(condition), 1)

/* A thread's body first seeds the thread's random numbers with the body's argument. */
void race_seed(const void *arg);

/* A random number below @n, and the state of 64 bits behind the last number. */
uint32_t race_any(uint32_t n);
uint64_t race_last_random(void);

/* Whether rounds are left.  A body returns when no round is left. */
int race_next_round(void);

/* The first word of every page of @slot at an even @turn. */
uint64_t race_word(const struct slot *slot, uint64_t turn);

/* Access memory that another thread may unmap.  Return the signal of the access, or 0. */
int race_read_word(const volatile void *p, uint64_t *value);
int race_write_word(volatile void *p, uint64_t value);

/* Enters a new export of @slot.  @turn was the slot's turn before the export. */
void race_view_enter(struct view *v, struct slot *slot, uint64_t turn);
void race_view_close(struct view *v);

/* A mapping shows the exported memory, and never other memory. */
void race_view_read(const struct view *v);

/* The body of a thread that imports the dma-bufs that @open exports. */
void race_import_views(void *arg, void (*open)(struct view *v));

/* Open the context and the importer for a test. */
void race_start(void);
void race_importer_open(void);
void race_importer_close(void);

/* Runs a thread for each body, up to a NULL, and waits. */
void race_run_threads(void *(*const bodies[])(void *));

/* Checks that no page stays pinned and no watch is left. */
void race_expect_nothing_left(void);

#endif
