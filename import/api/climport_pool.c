/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport's pools, and the allocators of packages of Python's over pools. */
#include <CL/climport.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "import/alloc/device_pool.h"
#include "import/api/common.h"
#include "util/log.h"
#include "util/thread.h"
#include "util/utf8.h"

#define POOL_INFO_SIZE SIZE_TO(struct climport_pool_info, limit)

/* A program's struct climport_pool is a struct pool. */
static struct pool *climport_pool_inner(struct climport_pool *pool)
{
	return (struct pool *)pool;
}

static enum device_pool_streams climport_streams_of(const void *stream)
{
	if (stream == CLIMPORT_STREAMS_BLOCKING)
		return STREAMS_BLOCKING;
	return stream == CLIMPORT_STREAMS_ALL ? STREAMS_ALL : STREAM_ONE;
}

static int climport_check_pool(uint64_t flags)
{
	int ret = climport_check_caller(flags, CLIMPORT_POOL_IPC | CLIMPORT_POOL_HOST, 0, 0);

	if (!ret && flags & CLIMPORT_POOL_IPC && flags & CLIMPORT_POOL_HOST)
		ret = log_errno(EINVAL, "a pool for IPC has no memory of the host");
	return ret;
}

static enum device_pool_memory climport_pool_memory(uint64_t flags)
{
	if (flags & CLIMPORT_POOL_HOST)
		return DEVICE_POOL_HOST;
	return flags & CLIMPORT_POOL_IPC ? DEVICE_POOL_IPC : DEVICE_POOL_VMM;
}

PUBLIC int climport_pool_create(int device, uint64_t flags, struct climport_pool **pool)
{
	struct pool *made = NULL;
	int ret;
	THREAD_NO_CANCEL();

	climport_error_begin();
	ret = climport_check_pool(flags);
	if (!ret)
		ret = device_pool_create(device, climport_pool_memory(flags), &made);
	if (!ret)
		*pool = (struct climport_pool *)made;
	return climport_error_end(ret);
}

PUBLIC void climport_pool_destroy(struct climport_pool *pool)
{
	THREAD_NO_CANCEL();

	device_pool_destroy(climport_pool_inner(pool));
}

PUBLIC void climport_pool_close(struct climport_pool *pool)
{
	THREAD_NO_CANCEL();

	device_pool_close(climport_pool_inner(pool));
}

PUBLIC int climport_pool_alloc(struct climport_pool *pool, size_t size, void *stream,
			       void **addresses, int count)
{
	int ret;
	THREAD_NO_CANCEL();

	climport_error_begin();
	ret = count < 1 ? log_errno(EINVAL, "%d allocations", count)
			: device_pool_alloc(climport_pool_inner(pool), size,
					    climport_streams_of(stream), stream, addresses, count);
	return ret < 0 ? climport_error_end(ret) : ret;
}

PUBLIC int climport_pool_free(struct climport_pool *pool, void *const *addresses, int count,
			      void *stream)
{
	int ret = 0;
	THREAD_NO_CANCEL();

	climport_error_begin();
	for (int i = 0; i < count; i++)
		if (!device_pool_free(climport_pool_inner(pool), (uintptr_t)addresses[i],
				      climport_streams_of(stream), stream))
			ret = log_errno(EINVAL, "%p is no allocation of the pool's", addresses[i]);
	return climport_error_end(ret);
}

PUBLIC void climport_pool_set_limit(struct climport_pool *pool, uint64_t bytes)
{
	pool_set_limit(climport_pool_inner(pool), bytes);
}

PUBLIC void climport_pool_trim(struct climport_pool *pool, uint64_t bytes)
{
	THREAD_NO_CANCEL();

	pool_trim(climport_pool_inner(pool), bytes);
}

PUBLIC int climport_pool_get_info(struct climport_pool *pool, struct climport_pool_info *out,
				  size_t out_size)
{
	struct climport_pool_info made;
	struct pool *inner = climport_pool_inner(pool);
	int ret;

	climport_error_begin();
	ret = climport_check_caller(0, 0, out_size, POOL_INFO_SIZE);
	if (ret)
		return climport_error_end(ret);
	lock_acquire(&inner->lock);
	made = (struct climport_pool_info){ inner->bytes, inner->used, inner->limit };
	lock_release(&inner->lock);
	climport_fill(out, out_size, &made, sizeof(made));
	return climport_error_end(0);
}

/* Memory of the process's pool of the device, or NULL with the error. */
static void *climport_device_alloc(size_t size, int device, enum device_pool_streams streams,
				   void *stream, int *err)
{
	struct pool *pool;
	void *address;
	int ret;
	THREAD_NO_CANCEL();

	if (!size)
		return NULL;
	climport_error_begin();
	pool = device_pool_of(device, true);
	ret = pool ? device_pool_alloc(pool, size, streams, stream, &address, 1) : -ENODEV;
	if (ret > 0)
		return address;
	*err = climport_error_end(ret);
	return NULL;
}

static void climport_device_free(void *address, int device, enum device_pool_streams streams,
				 void *stream)
{
	struct pool *pool;
	THREAD_NO_CANCEL();

	if (!address)
		return;
	pool = device_pool_of(device, false);
	if (pool && device_pool_free(pool, (uintptr_t)address, streams, stream))
		return;
	fprintf(stderr, "climport: %p is no allocation of device %d\n", address, device);
	abort();
}

/*
 * PyTorch does not look for NULL, so the capture fails as well: PyTorch raises the error of CUDA's that
 * the sentence explains.
 */
static void climport_torch_refuse_capture(int device, void *stream)
{
	struct pool *pool = device_pool_of(device, false);
	char why[LOG_MESSAGE_SIZE];

	snprintf(why, sizeof(why), "%s", climport_last_error());
	utf8_make_printable(why);
	fprintf(stderr, "climport_torch_alloc: %s\n", why);
	if (pool)
		cuda_order_spoil_capture(&pool->order, stream);
}

PUBLIC void *climport_torch_alloc(ptrdiff_t size, int device, void *stream)
{
	int err = 0;
	void *address = climport_device_alloc((size_t)size, device, STREAM_ONE, stream, &err);

	if (err == -EBUSY)
		climport_torch_refuse_capture(device, stream);
	return address;
}

PUBLIC void climport_torch_free(void *address, ptrdiff_t size, int device, void *stream)
{
	(void)size;
	climport_device_free(address, device, STREAM_ONE, stream);
}

PUBLIC void climport_torch_record_stream(void *address, void *stream)
{
	(void)stream;
	device_pools_mark_shared((uintptr_t)address);
}

PUBLIC void *climport_cupy_alloc(void *param, size_t size, int device)
{
	int err;

	(void)param;
	return climport_device_alloc(size, device, STREAMS_ALL, NULL, &err);
}

PUBLIC void climport_cupy_free(void *param, void *address, int device)
{
	(void)param;
	climport_device_free(address, device, STREAMS_ALL, NULL);
}
