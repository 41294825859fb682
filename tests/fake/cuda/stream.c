/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams, which are always done, and events.  While fake_cuda_set_busy() holds the device busy, the
 * device does not reach an event that is recorded, until cuEventSynchronize() of the event.
 */
#include "driver.h"
#include "fake_cuda.h"
#include "import/nvidia/cuda/cuda_driver.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { NOT_READY = 600, CAPTURE_UNSUPPORTED = 900 };

enum capture { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALIDATED };

struct stream {
	unsigned int flags;
	unsigned long long id;
	enum capture capture;
};

struct event {
	atomic_bool waits;
};

static atomic_bool busy;
static unsigned long long streams; /* made so far */

API void fake_cuda_set_busy(bool is_busy)
{
	busy = is_busy;
}

static int stream_call(const char *function)
{
	int result = driver_enter(function);

	return result ? result : driver_leave(CUDA_SUCCESS);
}

API int cuStreamCreate(struct stream **out, unsigned int flags);
API int cuStreamCreate(struct stream **out, unsigned int flags)
{
	int result = stream_call("cuStreamCreate");

	if (result)
		return result;
	*out = driver_malloc(sizeof(**out));
	if (!*out)
		return CUDA_OUT_OF_MEMORY;
	driver_lock();
	**out = (struct stream){ .flags = flags, .id = ++streams };
	driver_unlock();
	return CUDA_SUCCESS;
}

API int cuStreamDestroy_v2(struct stream *s);
API int cuStreamDestroy_v2(struct stream *s)
{
	int result = stream_call("cuStreamDestroy_v2");

	if (!result)
		free(s);
	return result;
}

API int cuStreamGetId(const struct stream *s, unsigned long long *id);
API int cuStreamGetId(const struct stream *s, unsigned long long *id)
{
	int result = stream_call("cuStreamGetId");

	if (!result)
		*id = s->id;
	return result;
}

API int cuStreamSynchronize(struct stream *s);
API int cuStreamSynchronize(struct stream *s)
{
	int result = stream_call("cuStreamSynchronize");

	if (result || (uintptr_t)s <= 2 || !s->capture)
		return result;
	s->capture = CAPTURE_INVALIDATED;
	return CAPTURE_UNSUPPORTED;
}

API int cuStreamIsCapturing(const struct stream *s, int *status);
API int cuStreamIsCapturing(const struct stream *s, int *status)
{
	int result = stream_call("cuStreamIsCapturing");

	if (!result)
		*status = (uintptr_t)s <= 2 ? CAPTURE_NONE : (int)s->capture;
	return result;
}

API void fake_cuda_capture_begin(void *stream)
{
	((struct stream *)stream)->capture = CAPTURE_ACTIVE;
}

API bool fake_cuda_capture_end(void *stream)
{
	struct stream *s = stream;
	bool is_whole = s->capture == CAPTURE_ACTIVE;

	s->capture = CAPTURE_NONE;
	return is_whole;
}

API int cuStreamWaitEvent(struct stream *s, struct event *e, unsigned int flags);
API int cuStreamWaitEvent(struct stream *s, struct event *e, unsigned int flags)
{
	(void)s;
	(void)e;
	(void)flags;
	return stream_call("cuStreamWaitEvent");
}

API int cuCtxSynchronize(void);
API int cuCtxSynchronize(void)
{
	busy = false;
	return stream_call("cuCtxSynchronize");
}

API int cuEventCreate(struct event **out, unsigned int flags);
API int cuEventCreate(struct event **out, unsigned int flags)
{
	int result = stream_call("cuEventCreate");

	(void)flags;
	if (result)
		return result;
	*out = driver_malloc(sizeof(**out));
	if (!*out)
		return CUDA_OUT_OF_MEMORY;
	**out = (struct event){ 0 };
	return CUDA_SUCCESS;
}

API int cuEventDestroy_v2(struct event *e);
API int cuEventDestroy_v2(struct event *e)
{
	int result = stream_call("cuEventDestroy_v2");

	if (!result)
		free(e);
	return result;
}

API int cuEventRecord(struct event *e, struct stream *s);
API int cuEventRecord(struct event *e, struct stream *s)
{
	int result = stream_call("cuEventRecord");

	(void)s;
	if (!result)
		e->waits = busy;
	return result;
}

API int cuEventQuery(struct event *e);
API int cuEventQuery(struct event *e)
{
	int result = stream_call("cuEventQuery");

	if (result)
		return result;
	return e->waits && busy ? NOT_READY : CUDA_SUCCESS;
}

API int cuEventSynchronize(struct event *e);
API int cuEventSynchronize(struct event *e)
{
	int result = stream_call("cuEventSynchronize");

	if (!result)
		e->waits = false;
	return result;
}

API int cuEventElapsedTime(float *ms, struct event *begin, struct event *end);
API int cuEventElapsedTime(float *ms, struct event *begin, struct event *end)
{
	int result = stream_call("cuEventElapsedTime");

	(void)begin;
	(void)end;
	if (!result)
		*ms = 1;
	return result;
}
