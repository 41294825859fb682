/* SPDX-License-Identifier: Apache-2.0 */
/* Command queues.  Each queue has a thread, which takes the first command that may run. */
#include "internal.h"

struct command {
	struct command *next;
	struct event *event;
	unsigned long number; /* in the order of enqueueing */
	struct op op;
	cl_uint num_deps;
	cl_uint num_lost; /* events that had failed before, and that the driver never learns of */
	struct event *deps[];
};

static bool queue_is_out_of_order(const struct queue *queue)
{
	return queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
}

/* How many events have failed of which the driver learns.  @failure: set to the last one's status. */
static cl_uint deps_failed(const struct command *c, cl_int *failure)
{
	cl_uint failed = 0;

	for (cl_uint i = c->num_lost; i < c->num_deps; i++) {
		if (c->deps[i]->status >= CL_COMPLETE)
			continue;
		*failure = c->deps[i]->status;
		failed++;
	}
	return failed;
}

static bool deps_done(const struct command *c)
{
	cl_int failure;

	if ((stub_get(STUB_NO_FAILURE_CALLBACK) || c->num_lost) && deps_failed(c, &failure))
		return true;
	if (c->num_lost)
		return false;
	for (cl_uint i = 0; i < c->num_deps; i++)
		if (c->deps[i]->status > CL_COMPLETE)
			return false;
	return true;
}

/*
 * The caller holds the lock.  Only the queue's own thread removes commands, so all listed commands
 * are incomplete.
 */
static struct command *next_ready(const struct queue *queue)
{
	struct command *ready = NULL;

	for (struct command *c = queue->first; c; c = c->next) {
		if (stub_get(STUB_LAZY) && c->number > queue->flushed)
			return ready;
		if (deps_done(c) && (c == queue->first || !c->op.waits_all))
			ready = c;
		if (ready && !stub_get(STUB_LAST_FIRST))
			return ready;
		if (!queue_is_out_of_order(queue) || c->op.barrier)
			return ready;
	}
	return ready;
}

static void command_free(struct command *c)
{
	op_drop(&c->op);
	for (cl_uint i = 0; i < c->num_deps; i++)
		stub_event_put(c->deps[i]);
	stub_event_put(c->event);
	free(c);
}

struct late {
	struct queue *queue;
	struct event *event;
	struct callback *due;
};

static void *callbacks_run_late(void *arg)
{
	struct late *late = arg;

	pthread_mutex_lock(&sched_lock);
	while (late->queue->first)
		pthread_cond_wait(&sched_changed, &sched_lock);
	pthread_mutex_unlock(&sched_lock);
	callbacks_run(late->event, late->due);
	stub_event_put(late->event);
	queue_put(late->queue);
	free(late);
	return NULL;
}

/* Like oclgrind, calls back once the queue is empty. */
static void callbacks_later(struct queue *queue, struct event *event, struct callback *due)
{
	struct late *late = malloc(sizeof(*late));
	pthread_t thread;

	*late = (struct late){ queue, event, due };
	object_retain(queue);
	object_retain(event);
	pthread_create(&thread, NULL, callbacks_run_late, late);
	pthread_detach(thread);
}

/* Commands and queues that have ended, and whose references a thread has still to drop. */
static atomic_uint ending;

void queues_settle(void)
{
	for (int ms = 0; atomic_load(&ending) && ms < 1000; ms++)
		sleep_ms(1);
}

void queues_forget(void)
{
	atomic_store(&ending, 0);
}

/* @status: the failure of the wait list, or CL_COMPLETE */
static void command_run(struct queue *queue, struct command *c, cl_int status)
{
	struct command **at = &queue->first;
	struct callback *due;

	if (status < 0 && !stub_get(STUB_FAILED_COMPLETE))
		status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	if (!status) {
		event_set_status(c->event, CL_SUBMITTED);
		event_set_status(c->event, CL_RUNNING);
		status = op_run(&c->op, queue->device);
	}
	if (status < 0 && c->event->base.refs == 1) /* PoCL 3.1 aborts here */
		stub_trace("an event fails that nobody holds");
	pthread_mutex_lock(&sched_lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	atomic_fetch_add(&ending, 1);
	due = event_change(c->event, status);
	pthread_mutex_unlock(&sched_lock);
	if (due && stub_get(STUB_CALLBACK_LATE))
		callbacks_later(queue, c->event, due);
	else
		callbacks_run(c->event, due);
	sleep_ms(stub_get(STUB_DROP_DELAY));
	command_free(c);
	atomic_fetch_sub(&ending, 1);
}

static void *queue_work(void *data)
{
	struct queue *queue = data;
	struct command *c;
	cl_int failure;
	cl_uint failed;
	bool detached;

	pthread_mutex_lock(&sched_lock);
	while (!queue->stop) {
		c = next_ready(queue);
		if (!c) {
			pthread_cond_wait(&sched_changed, &sched_lock);
			continue;
		}
		failure = CL_COMPLETE;
		failed = deps_failed(c, &failure);
		pthread_mutex_unlock(&sched_lock);
		if (failed > 1 && stub_get(STUB_TWO_FAILURES_ABORT))
			abort();
		command_run(queue, c, failure);
		pthread_mutex_lock(&sched_lock);
	}
	detached = queue->detached;
	pthread_mutex_unlock(&sched_lock);
	if (detached) {
		object_destroy(queue);
		atomic_fetch_sub(&ending, 1);
	}
	return NULL;
}

/* Commands hold the queue through their events.  After the last reference, no command is left. */
void queue_put(struct queue *queue)
{
	struct context *context = queue->context;
	pthread_t thread = queue->thread;
	bool self = pthread_equal(thread, pthread_self());

	if (!object_release(queue))
		return;
	pthread_mutex_lock(&sched_lock);
	queue->stop = true;
	queue->detached = self;
	pthread_cond_broadcast(&sched_changed);
	pthread_mutex_unlock(&sched_lock);
	stub_context_put(context);
	if (self) {
		atomic_fetch_add(&ending, 1);
		pthread_detach(thread);
		return;
	}
	pthread_join(thread, NULL);
	object_destroy(queue);
}

static cl_command_queue stub_queue_create(cl_context handle, cl_device_id device_handle,
					  cl_command_queue_properties properties,
					  cl_int *errcode_ret)
{
	struct context *context = object_get(handle, STUB_CONTEXT);
	struct device *device = object_get(device_handle, STUB_DEVICE);
	struct queue *queue;

	if (!context)
		return creation_failed(errcode_ret, CL_INVALID_CONTEXT);
	if (!device || !context_has(context, device))
		return creation_failed(errcode_ret, CL_INVALID_DEVICE);
	queue = object_create(STUB_QUEUE);
	object_retain(context);
	queue->context = context;
	queue->device = device;
	queue->properties = properties;
	pthread_create(&queue->thread, NULL, queue_work, queue);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_command_queue)queue;
}

cl_command_queue CL_API_CALL stub_clCreateCommandQueue(cl_context context, cl_device_id device,
						       cl_command_queue_properties properties,
						       cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateCommandQueue, U(context), U(device), U(properties));

	if (err)
		return creation_failed(errcode_ret, err);
	return stub_queue_create(context, device, properties, errcode_ret);
}

cl_command_queue CL_API_CALL
stub_clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
					const cl_queue_properties *properties, cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateCommandQueueWithProperties, U(context), U(device), U(properties));
	cl_command_queue_properties bits = 0;

	for (; properties && *properties; properties += 2)
		if (*properties == CL_QUEUE_PROPERTIES)
			bits = properties[1];
	if (err)
		return creation_failed(errcode_ret, err);
	return stub_queue_create(context, device, bits, errcode_ret);
}

cl_int CL_API_CALL stub_clRetainCommandQueue(cl_command_queue handle)
{
	CALL(clRetainCommandQueue, U(handle));
	if (!object_get(handle, STUB_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	object_retain(handle);
	return CL_SUCCESS;
}

static void queue_flush(struct queue *queue)
{
	pthread_mutex_lock(&sched_lock);
	queue->flushed = queue->enqueued;
	pthread_cond_broadcast(&sched_changed);
	pthread_mutex_unlock(&sched_lock);
}

void queue_flush_event(struct event *event)
{
	if (event->queue)
		queue_flush(event->queue);
}

cl_int CL_API_CALL stub_clReleaseCommandQueue(cl_command_queue handle)
{
	struct queue *queue = object_get(handle, STUB_QUEUE);

	cl_int err = CALL(clReleaseCommandQueue, U(handle));

	if (err)
		return err;
	if (!queue)
		return CL_INVALID_COMMAND_QUEUE;
	queue_flush(queue);
	queue_put(queue);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clSetCommandQueueProperty(cl_command_queue handle,
						  cl_command_queue_properties properties,
						  cl_bool enable, cl_command_queue_properties *old)
{
	struct queue *queue = object_get(handle, STUB_QUEUE);
	cl_int err = CALL(clSetCommandQueueProperty, U(handle), U(properties), U(enable), U(old));

	if (err)
		return err;
	if (!queue)
		return CL_INVALID_COMMAND_QUEUE;
	if (old)
		*old = queue->properties;
	queue->properties = enable ? queue->properties | properties
				   : queue->properties & ~properties;
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clGetCommandQueueInfo(cl_command_queue handle, cl_command_queue_info name,
					      size_t room, void *out, size_t *size_ret)
{
	struct queue *queue = object_get(handle, STUB_QUEUE);
	cl_int err = CALL(clGetCommandQueueInfo, U(handle), U(name), U(room), U(out), U(size_ret));
	cl_uint refs;

	if (err)
		return err;
	if (!queue)
		return CL_INVALID_COMMAND_QUEUE;
	refs = (cl_uint)queue->base.refs;
	switch (name) {
	case CL_QUEUE_CONTEXT:
		return info_put(&queue->context, sizeof(void *), room, out, size_ret);
	case CL_QUEUE_DEVICE:
		return info_put(&queue->device, sizeof(void *), room, out, size_ret);
	case CL_QUEUE_REFERENCE_COUNT:
		return info_put(&refs, sizeof(refs), room, out, size_ret);
	case CL_QUEUE_PROPERTIES:
		return info_put(&queue->properties, sizeof(queue->properties), room, out, size_ret);
	}
	return CL_INVALID_VALUE;
}

static struct command *command_create(struct queue *queue, const struct op *op, cl_uint num,
				      const cl_event *list)
{
	struct command *c = calloc(1, sizeof(*c) + num * sizeof(*c->deps));

	c->op = *op;
	c->event = event_create(queue->context, queue, op->type);
	c->num_deps = num;
	for (cl_uint i = 0; i < num; i++) {
		c->deps[i] = (struct event *)list[i];
		object_retain(c->deps[i]);
	}
	return c;
}

/* Moves events that have already failed to the front.  The caller holds the lock. */
static void deps_lose(struct command *c)
{
	for (cl_uint i = 0; stub_get(STUB_NO_FAILURE_BEHIND) && i < c->num_deps; i++) {
		struct event *dep = c->deps[i];

		if (dep->status >= CL_COMPLETE)
			continue;
		c->deps[i] = c->deps[c->num_lost];
		c->deps[c->num_lost++] = dep;
	}
}

static void queue_append(struct queue *queue, struct command *c)
{
	struct command **end = &queue->first;

	sleep_ms(stub_get(STUB_ENQUEUE_DELAY));
	pthread_mutex_lock(&sched_lock);
	deps_lose(c);
	while (*end)
		end = &(*end)->next;
	*end = c;
	c->number = ++queue->enqueued;
	pthread_cond_broadcast(&sched_changed);
	pthread_mutex_unlock(&sched_lock);
}

cl_int queue_submit(cl_command_queue handle, struct op *op, cl_uint num, const cl_event *list,
		    cl_event *event, bool blocking)
{
	struct queue *queue = (struct queue *)handle;
	cl_int err = wait_list_check(queue->context, num, list);
	struct command *c;
	struct event *done;

	if (err) {
		op_drop(op);
		return err;
	}
	c = command_create(queue, op, num, list);
	done = c->event;
	object_retain(done); /* the application's reference, or the reference for the wait below */
	queue_append(queue, c);
	if (blocking)
		err = event_wait(done);
	if (event && !err)
		*event = (cl_event)done;
	else
		stub_event_put(done);
	return err;
}

struct queue *queue_check(cl_command_queue handle, cl_mem a, cl_mem b, cl_int *err)
{
	struct queue *queue = object_get(handle, STUB_QUEUE);
	struct mem *first = object_get(a, STUB_MEM), *second = object_get(b, STUB_MEM);

	*err = CL_SUCCESS;
	if (!queue)
		*err = CL_INVALID_COMMAND_QUEUE;
	else if (!first || !second)
		*err = CL_INVALID_MEM_OBJECT;
	else if (first->context != queue->context || second->context != queue->context)
		*err = CL_INVALID_CONTEXT;
	return *err ? NULL : queue;
}

cl_int CL_API_CALL stub_clFlush(cl_command_queue handle)
{
	cl_int err = CALL(clFlush, U(handle));

	if (err)
		return err;
	if (!object_get(handle, STUB_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	while (stub_get(STUB_HANG_FLUSH))
		sleep_ms(1);
	queue_flush((struct queue *)handle);
	return CL_SUCCESS;
}

static bool commands_left(const struct queue *queue, unsigned long up_to)
{
	const long early = stub_get(STUB_FINISH_EARLY);
	const bool is_early = early == 3 ? queue->device->index == 1 : early;

	for (struct command *c = queue->first; c; c = c->next)
		if (c->number <= up_to && !(c->num_deps && is_early))
			return true;
	return false;
}

/* Waits for all commands enqueued so far.  The commands' callbacks may run later. */
static void queue_finish(struct queue *queue)
{
	unsigned long up_to;

	queue_flush(queue);
	while (stub_get(STUB_HANG))
		sleep_ms(10);
	pthread_mutex_lock(&sched_lock);
	up_to = queue->enqueued;
	if (stub_get(STUB_FINISH_EARLY) == 2 && queue->first && queue->first->num_deps)
		abort();
	while (commands_left(queue, up_to))
		pthread_cond_wait(&sched_changed, &sched_lock);
	pthread_mutex_unlock(&sched_lock);
}

cl_int CL_API_CALL stub_clFinish(cl_command_queue handle)
{
	struct queue *queue = object_get(handle, STUB_QUEUE);
	cl_int err = CALL(clFinish, U(handle));

	if (err)
		return err;
	if (!queue)
		return CL_INVALID_COMMAND_QUEUE;
	queue_finish(queue);
	return CL_SUCCESS;
}
