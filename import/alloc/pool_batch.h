/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When freed parts of a pool are idle: when the device has reached an event, or has done all work.  A
 * *batch* is the parts that wait for an event.  Drivers are called, without the pool's lock.
 */
#ifndef IMPORT_ALLOC_POOL_BATCH_H
#define IMPORT_ALLOC_POOL_BATCH_H

#include "import/alloc/pool_slab.h"

/*
 * Records an event for the parts that were freed so far, and makes those of earlier events idle that
 * the device has reached, in their order.
 */
void pool_collect(struct pool *pool);

/* Waits for the oldest event.  False: no batch, or an error of the driver's. */
bool pool_wait_oldest(struct pool *pool);

/* Waits for the device: every part that was freed before is idle, but for an error of the driver's. */
void pool_drain(struct pool *pool);

/*
 * The two halves of pool_drain(), for who waits in between.  The first takes all parts with keys from
 * @least, and all batches' parts.  After the second @parts are idle, but for an @error of the driver's.
 */
void pool_drain_begin(struct pool *pool, uint64_t least, struct list *parts);
void pool_drain_end(struct pool *pool, int error, struct list *parts) REQUIRES(pool->lock);

/* The end of the pool: destroys a list of batches with their events. */
void pool_batches_free(struct pool *pool, struct list *batches);

#endif
