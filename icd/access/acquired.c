/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/acquired.h"

#include <stdlib.h>

#include "icd/access/staged.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/proxy_event.h"
#include "util/log.h"

struct acquired_stage {
	struct memobj *source; /* held: the in-place buffer */
	bool is_written;
};

struct acquired {
	cl_command_queue queue;
	struct memobj *import; /* held: the first of the imports */
	cl_event event;	       /* of the acquire */
	cl_event command;
	struct acquired_stage *stages; /* of staged images, each once */
	cl_uint stage_count;
	bool has_turn; /* staged_take_turn() */
	cl_uint count;
	cl_mem imports[]; /* each once, and a reference of the driver's to each */
};

static bool acquired_has(const struct acquired *a, cl_mem import)
{
	for (cl_uint i = 0; i < a->count; i++)
		if (a->imports[i] == import)
			return true;
	return false;
}

/* The import of an object; each once. */
static void acquired_add(struct acquired *a, struct memobj *obj)
{
	cl_mem root;

	while (obj->parent)
		obj = obj->parent;
	root = memobj_root(obj);
	if (acquired_has(a, root))
		return;
	if (!a->import)
		a->import = memobj_hold(obj);
	next.clRetainMemObject(root);
	a->imports[a->count++] = root;
}

/* The stage of an image; each once. */
static void acquired_add_stage(struct acquired *a, const struct memobj *image)
{
	struct memobj *source = memobj_stage_source(image);
	cl_uint i = 0;

	while (i < a->stage_count && a->stages[i].source != source)
		i++;
	if (i == a->stage_count)
		a->stages[a->stage_count++].source = memobj_hold(source);
	a->stages[i].is_written |= staged_is_written(image);
}

static size_t acquired_count(struct memobj *const *objs, size_t count)
{
	size_t needed = 0;

	for (size_t i = 0; i < count; i++)
		needed += objs[i] && memobj_needs_acquire(objs[i]);
	return needed;
}

/* All is enqueued. */
static void acquired_end_turn(struct acquired *a)
{
	if (a->has_turn)
		staged_end_turn();
	a->has_turn = false;
}

static void acquired_free(struct acquired *a)
{
	acquired_end_turn(a);
	while (a->count)
		next.clReleaseMemObject(a->imports[--a->count]);
	while (a->stage_count)
		memobj_put(a->stages[--a->stage_count].source);
	if (a->event)
		next.clReleaseEvent(a->event);
	memobj_put(a->import);
	free(a->stages);
	free(a);
}

static cl_int acquired_enqueue(struct acquired *a, cl_uint num_wait, const cl_event *wait)
{
	cl_int err = memobj_enqueue_acquire(a->import, a->queue, a->count, a->imports, num_wait,
					    wait, &a->event);

	if (!is_created(a->event, err)) {
		err = err ? err : CL_OUT_OF_RESOURCES;
		log_error("the device acquires no imports: error %d", err);
	}
	return err;
}

/* Copies wait for one another: the command waits for one event. */
static cl_int acquired_copy(struct acquired *a, struct memobj *source, bool is_before,
			    cl_uint num_wait, const cl_event *wait, cl_event *last)
{
	cl_event event;
	cl_int err = staged_copy(a->queue, source, is_before, *last ? 1 : num_wait,
				 *last ? last : wait, &event);

	if (err)
		return err;
	if (*last)
		next.clReleaseEvent(*last);
	*last = event;
	return CL_SUCCESS;
}

static cl_int acquired_enqueue_all(struct acquired *a, cl_uint num_wait, const cl_event *wait)
{
	cl_int err = a->count ? acquired_enqueue(a, num_wait, wait) : CL_SUCCESS;

	for (cl_uint i = 0; !err && i < a->stage_count; i++)
		err = acquired_copy(a, a->stages[i].source, true, num_wait, wait, &a->event);
	return err;
}

static struct acquired *acquired_create(cl_command_queue queue, size_t needed)
{
	struct acquired *a = calloc(1, sizeof(*a) + needed * sizeof(a->imports[0]));

	if (a)
		a->stages = calloc(needed, sizeof(*a->stages));
	if (a && a->stages) {
		a->queue = queue;
		return a;
	}
	log_error("no memory to acquire imports");
	free(a);
	return NULL;
}

cl_int acquired_begin(cl_command_queue queue, struct memobj *const *objs, size_t count,
		      cl_uint num_wait, const cl_event *wait, struct acquired **acquired)
{
	const size_t needed = acquired_count(objs, count);
	struct acquired *a;
	cl_int err;

	*acquired = NULL;
	if (!needed)
		return CL_SUCCESS;
	a = acquired_create(queue, needed);
	if (!a)
		return CL_OUT_OF_HOST_MEMORY;
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->is_staged)
			acquired_add_stage(a, objs[i]);
		else if (objs[i] && memobj_needs_acquire(objs[i]))
			acquired_add(a, objs[i]);
	a->has_turn = a->stage_count && staged_take_turn();
	err = acquired_enqueue_all(a, num_wait, wait);
	if (!err)
		*acquired = a;
	else if (a->count && a->event)
		acquired_cancel(a);
	else
		acquired_free(a);
	return err;
}

const cl_event *acquired_wait_list(const struct acquired *a)
{
	return &a->event;
}

cl_event *acquired_command(struct acquired *a)
{
	return &a->command;
}

/* NULL: the driver has refused.  The command runs all the same, and has its own event. */
static cl_event acquired_release(struct acquired *a, cl_event behind)
{
	cl_event release = NULL;
	cl_int err;

	if (!a->count)
		return NULL;
	err = memobj_enqueue_release(a->import, a->queue, a->count, a->imports, behind, &release);
	if (is_created(release, err))
		return release;
	log_error("the device does not release imports: error %d", err);
	return NULL;
}

/* @release: of acquired_release(), or NULL; set to the last copy's event. */
static cl_int acquired_copy_back(struct acquired *a, cl_event *release)
{
	cl_int err = CL_SUCCESS;

	for (cl_uint i = 0; !err && i < a->stage_count; i++)
		if (a->stages[i].is_written)
			err = acquired_copy(a, a->stages[i].source, false, 1, &a->command, release);
	return err;
}

void acquired_cancel(struct acquired *a)
{
	cl_event release = acquired_release(a, a->event);

	if (release)
		next.clReleaseEvent(release);
	acquired_free(a);
}

static cl_int acquired_wait(cl_event event)
{
	cl_int status = CL_COMPLETE, err = next.clWaitForEvents(1, &event);

	next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			    NULL);
	return err || status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

cl_int acquired_end(struct acquired *a, cl_event *event, cl_bool blocking)
{
	cl_event release = acquired_release(a, a->command);
	cl_int err = acquired_copy_back(a, &release), failed = CL_SUCCESS;

	acquired_end_turn(a);
	if (blocking) /* also if a copy is missing: the command runs, and uses the program's memory */
		failed = acquired_wait(release ? release : a->command);
	if (!err)
		err = failed;
	proxy_event_give(release, a->command, err ? NULL : event);
	acquired_free(a);
	return err;
}
