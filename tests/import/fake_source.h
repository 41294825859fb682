/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of pins for the cache.  The addresses have no memory.  A pin covers whole blocks, as a
 * real pin covers an allocation.  unpin() poisons the fields read by the pin's users.
 */
#ifndef TESTS_IMPORT_FAKE_SOURCE_H
#define TESTS_IMPORT_FAKE_SOURCE_H

#include "import/cache/cache.h"

#include <pthread.h>

#define FAKE_BASE (UINTPTR_MAX / 4 + 1)
#define FAKE_BLOCKS 1024
#define FAKE_HELD 4096	/* pins at once, at most */
#define FAKE_OFFSET 512 /* of a pin in the descriptor */

/* How the cache learns of freed memory. */
enum fake_check { FAKE_STATUS, FAKE_IS_CURRENT, FAKE_NEITHER };

/* The users of a pin read plain fields, so a thread sanitizer sees a read after unpin(). */
struct fake_held {
	uint32_t state, generation;
};

struct fake {
	enum fake_check check;
	size_t block;
	size_t capacity;		   /* bytes pinned at once; beyond, pin() is -ENOSPC */
	int error;			   /* result of pin(), if not 0 */
	int pinned_wrong;		   /* pin() pins the next block */
	void (*in_pin)(struct fake *fake); /* called without the lock */
	void (*in_look)(void);		   /* called while a look-up asks FAKE_IS_CURRENT */

	pthread_mutex_t lock;
	_Atomic uint32_t generation[FAKE_BLOCKS]; /* of the memory in a block */
	size_t bytes;
	int tries, pins, unpins;
	int idles;			  /* calls of idle() */
	struct fake_held held[FAKE_HELD]; /* no malloc(), for the children of threads */
	uint32_t next_held;
	int wrong; /* unpins without a pin */
};

extern const struct cache_source fake_source, fake_source_unchecked;

/* Blocks of @block bytes; the capacity is all blocks. */
void fake_init(struct fake *fake, enum fake_check check, size_t block);

/* Frees the block's memory; the address now belongs to other memory. */
void fake_free(struct fake *fake, size_t block);

uintptr_t fake_address(const struct fake *fake, size_t block);

/* Whether the pin is held. */
int fake_is_pinned(const struct cache_pin *pin);

/* The generation of the pinned memory. */
uint32_t fake_generation(const struct cache_pin *pin);

/* A cache of fresh @fake. */
struct cache *fake_cache_open(struct fake *fake, enum fake_check check, size_t block, size_t bytes,
			      uint32_t entries);
struct cache *fake_cache_open_with(struct fake *fake, enum fake_check check, size_t block,
				   const struct cache_config *config);

/* Fails the test unless nothing is held. */
void fake_cache_close(struct fake *fake, struct cache *cache);

#endif
