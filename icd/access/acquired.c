/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/acquired.h"

#include <stdlib.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/method.h"
#include "icd/objects/proxy_event.h"
#include "util/cl_names.h"
#include "util/log.h"

struct acquired {
	cl_command_queue queue;
	struct memobj *import; /* held: the first of the imports */
	cl_event event;	       /* of the acquire */
	cl_event command;
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

static size_t acquired_count(struct memobj *const *objs, size_t count)
{
	size_t needed = 0;

	for (size_t i = 0; i < count; i++)
		needed += objs[i] && memobj_needs_acquire(objs[i]);
	return needed;
}

static void acquired_free(struct acquired *a)
{
	while (a->count)
		next.clReleaseMemObject(a->imports[--a->count]);
	if (a->event)
		next.clReleaseEvent(a->event);
	memobj_put(a->import);
	free(a);
}

static cl_int acquired_enqueue(struct acquired *a, cl_uint num_wait, const cl_event *wait)
{
	cl_int err = a->import->method->enqueue_acquire(a->queue, a->count, a->imports, num_wait,
							wait, &a->event);

	if (!err && !a->event)
		err = CL_INVALID_EVENT;
	if (err)
		log_error("the device acquires no imports: %s", cl_error_name(err));
	return err;
}

static struct acquired *acquired_create(cl_command_queue queue, size_t needed)
{
	struct acquired *a = calloc(1, sizeof(*a) + needed * sizeof(a->imports[0]));

	if (a)
		a->queue = queue;
	else
		log_error("no memory to acquire imports");
	return a;
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
		if (objs[i] && memobj_needs_acquire(objs[i]))
			acquired_add(a, objs[i]);
	err = acquired_enqueue(a, num_wait, wait);
	if (err)
		acquired_free(a);
	else
		*acquired = a;
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
	cl_int err = a->import->method->enqueue_release(
		a->queue, a->count, a->imports, behind ? 1 : 0, behind ? &behind : NULL, &release);

	if (is_created(release, err))
		return release;
	log_error("the device does not release imports: %s", cl_error_name(err));
	return NULL;
}

void acquired_cancel(struct acquired *a)
{
	cl_event release = acquired_release(a, a->event);

	if (release)
		next.clReleaseEvent(release);
	acquired_free(a);
}

cl_int acquired_end(struct acquired *a, cl_event *event, cl_bool blocking)
{
	cl_event release = acquired_release(a, a->command);
	cl_int err = blocking ? proxy_event_wait(release ? release : a->command) : CL_SUCCESS;

	proxy_event_give(release, a->command, err ? NULL : event);
	acquired_free(a);
	return err;
}
