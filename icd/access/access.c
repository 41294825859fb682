/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/access.h"

#include "icd/layer.h"
#include "icd/objects/context.h"
#include "icd/objects/method.h"
#include "icd/objects/proxy_event.h"
#include "util/cl_names.h"
#include "util/log.h"

/* The driver's objects that the imports are, each once: how many. */
static cl_uint access_roots(const struct memobj_list *imports, cl_mem roots[MEMOBJ_LIST_MAX])
{
	cl_uint count = 0, at;

	for (size_t i = 0; i < imports->count; i++) {
		roots[count] = memobj_root(memobj_import(imports->objs[i]));
		for (at = 0; roots[at] != roots[count]; at++)
			;
		count += at == count;
	}
	return count;
}

static cl_int access_acquire(struct access *a)
{
	const struct method_ops *method = a->imports.objs[0]->method;
	cl_mem roots[MEMOBJ_LIST_MAX];
	cl_uint count = access_roots(&a->imports, roots);
	cl_int err;

	queue_bracket_close(a->queue);
	a->acquire = NULL;
	err = method->enqueue_edge(a->queue, true, count, roots, a->num_wait, a->wait, &a->acquire);
	if (!err && !a->acquire)
		err = CL_INVALID_EVENT;
	if (err)
		log_error("the driver did not acquire the imports that the command uses "
			  "(clEnqueueAcquireExternalMemObjectsKHR): %s",
			  cl_error_name(err));
	a->num_wait = 1;
	a->wait = &a->acquire;
	return err;
}

/* The event of the release.  NULL: the driver has refused.  The command runs all the same, and has its own event. */
static cl_event access_release(const struct access *a, const cl_event *behind)
{
	const struct method_ops *method = a->imports.objs[0]->method;
	cl_mem roots[MEMOBJ_LIST_MAX];
	cl_uint count = access_roots(&a->imports, roots);
	cl_event release = NULL;
	cl_int err = method->enqueue_edge(a->queue, false, count, roots, 1, behind, &release);

	next.clReleaseEvent(a->acquire);
	if (is_created(release, err))
		return release;
	log_error("the driver did not release the imports that the command uses "
		  "(clEnqueueReleaseExternalMemObjectsKHR): %s",
		  cl_error_name(err));
	return NULL;
}

/* The command joins the queue's open bracket, or gets a bracket of its own. */
static cl_int access_bracket(struct access *a, unsigned int edges)
{
	const bool may_join = edges & ACCESS_JOIN && !a->num_wait;
	const bool may_open = edges & ACCESS_BEGIN && !a->event && a->imports.count;
	cl_int err = CL_SUCCESS;

	if (may_join)
		a->joined =
			queue_bracket_enter(a->queue, &a->imports, edges, may_open, &a->bracket);
	if (!a->joined && a->imports.count) {
		queue_bracket_close(a->queue);
		/* PoCL 3.1 takes a list of no events for kernels, not for markers. */
		err = bracket_open(a->queue, &a->imports, edges & ~ACCESS_JOIN, a->num_wait,
				   may_join ? NULL : a->wait, &a->bracket);
	}
	if (err || !a->bracket || !(edges & ACCESS_BEGIN))
		return err;
	a->num_wait = 1;
	a->wait = bracket_wait_list(a->bracket);
	return CL_SUCCESS;
}

/* A context takes dma-bufs by one method, whose imports are bracketed or acquired. */
cl_int access_begin(struct access *a, cl_command_queue queue, unsigned int edges)
{
	cl_int err;

	if (!a->imports.count && (a->num_wait || a->event)) {
		queue_bracket_close(queue);
		return CL_SUCCESS;
	}
	a->queue = queue;
	a->bracket = NULL;
	if (a->imports.left_out) {
		log_error("a command uses more than %d dma-bufs", MEMOBJ_LIST_MAX);
		err = CL_OUT_OF_RESOURCES;
	} else if (a->imports.count && memobj_needs_acquire(a->imports.objs[0])) {
		err = access_acquire(a);
	} else {
		err = access_bracket(a, edges);
	}
	if (err) {
		context_notify(a->imports.objs[0]->context, "access to a dma-buf", err);
		memobj_list_put(&a->imports);
		return err;
	}
	a->app_event = a->event;
	a->command = NULL;
	if (a->imports.count || a->joined)
		a->event = &a->command;
	return CL_SUCCESS;
}

/* @marker: the event that completes for the application, a reference; NULL: the command's own. */
static cl_int access_close(struct access *a, bool is_enqueued, bool needs_event, cl_event *marker)
{
	cl_event *wanted = needs_event ? marker : NULL;

	if (!a->bracket) {
		*marker = access_release(a, is_enqueued ? &a->command : &a->acquire);
		return CL_SUCCESS;
	}
	if (needs_event && a->command)
		next.clRetainEvent(a->command);
	if (a->joined)
		return queue_bracket_leave(a->joined, is_enqueued ? a->command : NULL, wanted);
	if (is_enqueued)
		bracket_add(a->bracket, a->command);
	return bracket_end(a->bracket, wanted);
}

cl_int access_finish(struct access *a, cl_int err, cl_bool blocking)
{
	const bool needs_event = !err && (blocking || a->app_event || !a->bracket);
	cl_event marker = NULL;
	const cl_int ended = access_close(a, !err, needs_event, &marker);

	memobj_list_put(&a->imports);
	err = err ? err : ended;
	if (err || !needs_event) {
		if (marker)
			next.clReleaseEvent(marker);
		if (needs_event && a->command)
			next.clReleaseEvent(a->command);
		return err;
	}
	if (!a->command) { /* a release that is the END of the queue's bracket */
		*a->app_event = marker;
		return CL_SUCCESS;
	}
	if (blocking)
		err = proxy_event_wait(marker ? marker : a->command);
	proxy_event_give(marker, a->command, err ? NULL : a->app_event);
	return err;
}
