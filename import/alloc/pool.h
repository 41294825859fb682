/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a device for reuse, in the order of the device's work.
 *
 * Nouns.  A *slab* is memory of a source: 2 MiB in equal *parts*, or a single part of a multiple of
 * 2 MiB.  A part is *live* from pool_alloc() to pool_free().  The device may still use a part that was
 * freed, so each freed part has a *key*, which says what orders the part's next use:
 *
 *   POOL_IDLE      the device does not use the part: any use may follow.
 *   a stream       the next use on the same stream follows by itself.
 *   POOL_BLOCKING  any blocking stream may use the part: an *event* on the legacy default stream,
 *		    which comes after the free, comes after all of the uses.
 *   POOL_ANY       any stream may use the part: only the end of all work of the device will do.
 *		    Parts of one stream too many are here, too: a program may make streams without end.
 *
 * A *batch* is an event, and the parts that are idle when the device reaches the event.
 *
 * pool_free() calls no driver.  All calls of drivers are made without the lock, by pool_alloc(),
 * pool_trim() and pool_destroy().  A thread that calls a driver may have parts and slabs that are in no
 * list.  So an allocation for which there is no memory waits for all such threads, and tries again
 * alone.
 */
#ifndef IMPORT_ALLOC_POOL_H
#define IMPORT_ALLOC_POOL_H

#include "import/alloc/pool_slab.h"

/* The caller opens pool->order. */
void pool_init(struct pool *pool, const struct pool_source *source, uint64_t limit);

/* Waits for the device, and gives all memory back, also live parts. */
void pool_destroy(struct pool *pool);

/*
 * The end of a pool whose live parts stay until the last free.  No allocation comes any more.
 * pool_detach() waits for the device, after which pool_close() and pool_free() need no context.  True:
 * there are no live parts, and the caller calls pool_destroy().
 */
void pool_detach(struct pool *pool);
bool pool_close(struct pool *pool);

/*
 * Up to @count parts of at least @size bytes, for use in the order of @key.  The first part may have
 * to wait for the device or come from a new slab; the others are there already.
 *
 * Returns the number of parts, or -ENOMEM, or an error of the source.
 */
int pool_alloc(struct pool *pool, size_t size, uint64_t key, void **addresses, int count);

/*
 * Gives a part back; its uses that are queued now were queued in the order of @key.  False: @address
 * is no live part.  @last is set: the part was the last of a closed pool, and the caller calls
 * pool_destroy().
 */
bool pool_free(struct pool *pool, uintptr_t address, uint64_t key, bool *last);

/* The live part is used by streams that pool_free() does not name: POOL_ANY.  False: as above. */
bool pool_mark_shared(struct pool *pool, uintptr_t address);

void pool_set_limit(struct pool *pool, uint64_t limit);

/* Waits for the device, and gives unused slabs back down to @limit bytes. */
void pool_trim(struct pool *pool, uint64_t limit);

#endif
