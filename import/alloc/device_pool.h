/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of the memory of CUDA's devices: climport_pool_create() in <CL/climport.h>. */
#ifndef IMPORT_ALLOC_DEVICE_POOL_H
#define IMPORT_ALLOC_DEVICE_POOL_H

#include "import/alloc/pool.h"

/* The streams that use memory, beside a stream of CUDA's. */
enum device_pool_streams { STREAM_ONE, STREAMS_BLOCKING, STREAMS_ALL };

/*
 * Memory of cuMemCreate(), of cuMemAlloc(), and of cuMemHostAlloc().  Memory of the host is registered,
 * as by climport_register().
 */
enum device_pool_memory { DEVICE_POOL_VMM, DEVICE_POOL_IPC, DEVICE_POOL_HOST };

/* Loads libcuda. */
int device_pool_create(int ordinal, enum device_pool_memory memory, struct pool **out);
void device_pool_destroy(struct pool *pool);

/*
 * No allocation comes any more.  Memory of the host that is live stays, also after the context's end,
 * until the last device_pool_free() destroys the pool; other memory goes.
 */
void device_pool_close(struct pool *pool);

/*
 * @stream: of STREAM_ONE.  The number of parts, at most @count, or a negative errno, logged.  -EBUSY: the
 * stream captures a graph.
 */
int device_pool_alloc(struct pool *pool, size_t size, enum device_pool_streams streams,
		      void *stream, void **addresses, int count);

/* False: @address is no live part. */
bool device_pool_free(struct pool *pool, uintptr_t address, enum device_pool_streams streams,
		      void *stream);

/* The process's pool of cuMemCreate() memory of a device.  @make: if there is none yet.  Or NULL. */
struct pool *device_pool_of(int ordinal, bool make);

/* Waits for the devices of these pools, and gives memory without use back. */
void device_pools_trim(void);

/* pool_mark_shared() in whichever of these pools @address is. */
void device_pools_mark_shared(uintptr_t address);

#endif
