/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/cuda/cuda_order.h"

#include "import/nvidia/cuda/cuda_driver.h"
#include "util/log.h"

#include <errno.h>

#define CUDA_EVENT_WITHOUT_TIMES 2u
#define CUDA_HOST_PORTABLE 1u
#define CUDA_HOST_MAPPED 2u

/* Handles of streams that are numbers. */
static void *const cuda_stream_legacy = (void *)1;

static int cuda_order_find_device(struct cuda_order *order, int ordinal)
{
	const struct cuda_driver *cu = order->cu;
	int result = cu->device_get(&order->device, ordinal);

	if (!result)
		result = cu->device_uuid(order->uuid, order->device);
	if (!result)
		result = cu->total_memory(&order->memory, order->device);
	return result ? cuda_failed(cu, result, "CUDA device %d", ordinal) : 0;
}

int cuda_order_open(struct cuda_order *order, int ordinal)
{
	int result, ret;

	order->cu = cuda_driver_load();
	if (!order->cu)
		return -ENODEV;
	ret = cuda_order_find_device(order, ordinal);
	if (ret)
		return ret;
	result = order->cu->primary_retain(&order->context, order->device);
	return result ? cuda_failed(order->cu, result, "context of CUDA device %d", ordinal) : 0;
}

void cuda_order_close(struct cuda_order *order)
{
	order->cu->primary_release(order->device);
	order->context = NULL;
}

/* @scope is left by the caller if the result is 0. */
static int cuda_order_enter(const struct cuda_order *order, struct cuda_scope *scope)
{
	int result = cuda_scope_enter(scope, order->cu, order->context, order->device);

	return result ? cuda_failed(order->cu, result, "context of CUDA device %d", order->device)
		      : 0;
}

static int cuda_order_record_in(const struct cuda_driver *cu, void **event)
{
	int result;

	if (!*event) {
		result = cu->event_create(event, CUDA_EVENT_WITHOUT_TIMES);
		if (result)
			return cuda_failed(cu, result, "cuEventCreate");
	}
	result = cu->event_record(*event, cuda_stream_legacy);
	return result ? cuda_failed(cu, result, "cuEventRecord") : 0;
}

int cuda_order_record(const struct cuda_order *order, void **event)
{
	struct cuda_scope scope;
	int ret = cuda_order_enter(order, &scope);

	if (ret)
		return ret;
	ret = cuda_order_record_in(order->cu, event);
	cuda_scope_leave(&scope);
	return ret;
}

/* Events know their context. */
bool cuda_order_is_reached(const struct cuda_order *order, void *event)
{
	return !order->cu->event_query(event);
}

int cuda_order_wait(const struct cuda_order *order, void *event)
{
	int result = order->cu->event_synchronize(event);

	return result ? cuda_failed(order->cu, result, "cuEventSynchronize") : 0;
}

void cuda_order_event_destroy(const struct cuda_order *order, void *event)
{
	order->cu->event_destroy(event);
}

int cuda_order_drain(const struct cuda_order *order)
{
	struct cuda_scope scope;
	int ret = cuda_order_enter(order, &scope);
	int result;

	if (ret)
		return ret;
	result = order->cu->context_synchronize();
	cuda_scope_leave(&scope);
	return result ? cuda_failed(order->cu, result, "cuCtxSynchronize") : 0;
}

bool cuda_order_stream_id(const struct cuda_order *order, void *stream, uint64_t *id)
{
	struct cuda_scope scope;
	unsigned long long number;
	int result;

	if (!stream || stream == cuda_stream_legacy) {
		*id = 0;
		return true;
	}
	if (!order->cu->stream_id || cuda_scope_enter(&scope, order->cu, order->context, -1))
		return false;
	result = order->cu->stream_id(stream, &number);
	cuda_scope_leave(&scope);
	*id = number + 1;
	return !result;
}

/* The legacy default stream cannot be captured. */
bool cuda_order_is_capturing(const struct cuda_order *order, void *stream)
{
	struct cuda_scope scope;
	int status = 0, result;

	if (!stream || stream == cuda_stream_legacy || !order->cu->stream_captures ||
	    cuda_scope_enter(&scope, order->cu, order->context, -1))
		return false;
	result = order->cu->stream_captures(stream, &status);
	cuda_scope_leave(&scope);
	return !result && status;
}

/*
 * "When an invalid operation is attempted during stream capture, any associated capture graphs are
 * invalidated" (CUDA C++ Programming Guide, Prohibited and Unhandled Operations): here a wait for the
 * stream.
 */
void cuda_order_spoil_capture(const struct cuda_order *order, void *stream)
{
	struct cuda_scope scope;

	if (!order->cu->stream_synchronize ||
	    cuda_scope_enter(&scope, order->cu, order->context, -1))
		return;
	order->cu->stream_synchronize(stream);
	cuda_scope_leave(&scope);
}

int cuda_order_alloc(const struct cuda_order *order, size_t size, uintptr_t *address)
{
	struct cuda_scope scope;
	int ret = cuda_order_enter(order, &scope);
	int result;

	if (ret)
		return ret;
	result = order->cu->alloc(address, size);
	cuda_scope_leave(&scope);
	return result ? cuda_failed(order->cu, result, "cuMemAlloc of %zu bytes", size) : 0;
}

void cuda_order_free(const struct cuda_order *order, uintptr_t address)
{
	struct cuda_scope scope;
	int outside = cuda_order_enter(order, &scope);

	order->cu->free(address);
	if (!outside)
		cuda_scope_leave(&scope);
}

int cuda_order_host_alloc(const struct cuda_order *order, size_t size, uintptr_t *address)
{
	struct cuda_scope scope;
	int ret = cuda_order_enter(order, &scope);
	int result;

	if (ret)
		return ret;
	result = order->cu->host_alloc(address, size, CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED);
	cuda_scope_leave(&scope);
	return result ? cuda_failed(order->cu, result, "cuMemHostAlloc of %zu bytes", size) : 0;
}

void cuda_order_host_free(const struct cuda_order *order, uintptr_t address)
{
	struct cuda_scope scope;
	int outside = cuda_order_enter(order, &scope);

	order->cu->host_free(address);
	if (!outside)
		cuda_scope_leave(&scope);
}
