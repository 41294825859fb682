/* SPDX-License-Identifier: Apache-2.0 */
/* clEnqueueAcquireExternalMemObjectsKHR and clEnqueueReleaseExternalMemObjectsKHR. */
#include "calls.h"
#include "external.h"
#include "kernels.h"

struct command {
	const struct edge *edge;
	struct dma_buf *buf;
	cl_mem mem;
	cl_command_queue queue;
};

/* An object that the command may take: acquired, if the command is a release. */
static struct command command_open(const struct edge *edge, enum queue_kind kind)
{
	struct command c = { .edge = edge, .buf = dma_buf_make(spec.page) };

	c.mem = external_buffer(c.buf);
	c.queue = queues_get(kind);
	if (!c.queue)
		test_skip("device has no %s", queue_names[kind]);
	if (edge->is_release)
		external_run_edge(ACQUIRE, c.mem);
	return c;
}

/* Releases the object if it is acquired: by the command, or before one that failed. */
static void command_close(const struct command *c, bool has_succeeded)
{
	if (c->edge->is_release != has_succeeded)
		external_run_edge(RELEASE, c->mem);
}

static cl_int command_call(const struct command *c, cl_uint num_wait, const cl_event *wait,
			   cl_event *event)
{
	return external_enqueue_edge(c->edge, c->queue, 1, &c->mem, num_wait, wait, event);
}

static void command_release_event(void *event)
{
	clReleaseEvent(event);
}

static cl_event command_enqueue(const struct command *c, cl_event wait)
{
	cl_event event = NULL;

	EXPECT_EQ(command_call(c, !!wait, wait ? &wait : NULL, &event), CL_SUCCESS);
	EXPECT(event != NULL);
	spec_undo_later(command_release_event, event);
	EXPECT_EQ(clFlush(c->queue), CL_SUCCESS);
	return event;
}

static cl_int command_status(cl_event event)
{
	cl_int status = 1;

	EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
				 NULL),
		  CL_SUCCESS);
	return status;
}

#define K_67                                                                                     \
	"K-67 CL_INVALID_VALUE if num_mem_objects is zero and mem_objects is not a NULL value, " \
	"or "                                                                                    \
	"if num_mem_objects is greater than 0 and mem_objects is NULL."
#define K_68                                                                                     \
	"K-68 CL_INVALID_MEM_OBJECT if any of the memory objects in mem_objects is not a valid " \
	"OpenCL memory object created using an external memory handle."

static const struct command_queue {
	const char *name;
	enum queue_kind kind;
} command_queues[] = { { "in_order", QUEUE_SECOND }, { "out_of_order", QUEUE_OUT_OF_ORDER } };

static const struct command_type {
	const char *name, *says;
	const struct edge *edge;
} command_types[] = {
	{ "acquire",
	  "K-46 To enqueue a command to acquire OpenCL memory objects created from external memory "
	  "handles, call the function clEnqueueAcquireExternalMemObjectsKHR",
	  ACQUIRE },
	{ "release",
	  "K-47 To enqueue a command to release OpenCL memory objects created from external memory "
	  "handles, call the function clEnqueueReleaseExternalMemObjectsKHR",
	  RELEASE },
	{ "type_of_acquire",
	  "K-78 clEnqueueAcquireExternalMemObjectsKHR: CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR",
	  ACQUIRE },
	{ "type_of_release",
	  "K-79 clEnqueueReleaseExternalMemObjectsKHR: CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR",
	  RELEASE },
};

TEST_EACH_AS(external_command, "external", struct command_type, command_types,
	     command_types[i].says)
{
	const struct command c = command_open(row->edge, QUEUE_FIRST);
	cl_event done = command_enqueue(&c, NULL);

	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT_EQ(command_status(done), CL_COMPLETE);
	QUERY(clGetEventInfo, done, CL_EVENT_COMMAND_TYPE, cl_command_type, row->edge->type);
	command_close(&c, true);
}

/*
 * The host's bytes, which change until the acquire's list is complete; a kernel behind the acquire; and the host again, behind
 * the release, which waits for the kernel.
 */
static void command_expect_round(enum queue_kind kind)
{
	const struct command c = command_open(ACQUIRE, kind);
	struct command release = c;
	const cl_command_queue tested = spec.queue;
	cl_event gate, acquired, done, released;

	release.edge = RELEASE;
	for (unsigned int turn = 1; turn < 4; turn++) {
		gate = queues_create_gate();
		external_fill(c.buf, spec.page, 100);
		acquired = command_enqueue(&c, gate);
		spec.queue = c.queue;
		kernels_add_after(c.mem, spec.page, 10, acquired, &done);
		spec.queue = tested;
		spec_undo_later(command_release_event, done);
		released = command_enqueue(&release, done);
		external_fill(c.buf, spec.page, turn);
		EXPECT(command_status(released) > CL_COMPLETE);
		queues_open_gate(gate);
		EXPECT_EQ(clWaitForEvents(1, &released), CL_SUCCESS);
		EXPECT(external_is(c.buf, spec.page, turn + 10));
	}
}

TEST_EACH(external_host_to_device, struct command_queue, command_queues,
	  "K-58 This is to guarantee that the state of the memory objects is up-to-date and they "
	  "are accessible to OpenCL.")
{
	command_expect_round(row->kind);
}

TEST_EACH(external_device_to_host, struct command_queue, command_queues,
	  "K-60 This is to guarantee that the state of memory objects is up-to-date and that they "
	  "are accessible outside of OpenCL.")
{
	command_expect_round(row->kind);
}

TEST(external_events_synchronize,
     "K-52 The events specified in event_wait_list act as synchronization points.")
{
	command_expect_round(QUEUE_OUT_OF_ORDER);
}

TEST_EACH_PAIR(external_waits, struct edge, external_edges, struct command_queue, command_queues,
	       "K-49 event_wait_list points to the list of events that need to complete before "
	       "[the command] can be executed.")
{
	const struct command c = command_open(row, column->kind);
	cl_event gates[2] = { queues_create_gate(), queues_create_gate() }, done = NULL;

	EXPECT_EQ(command_call(&c, 2, gates, &done), CL_SUCCESS);
	spec_undo_later(command_release_event, done);
	EXPECT_EQ(clFlush(c.queue), CL_SUCCESS);
	queues_rest();
	EXPECT(command_status(done) > CL_COMPLETE);
	queues_open_gate(gates[0]);
	queues_rest();
	EXPECT(command_status(done) > CL_COMPLETE);
	queues_open_gate(gates[1]);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT_EQ(command_status(done), CL_COMPLETE);
	command_close(&c, true);
}

/* In order the command comes behind others; out of order climport's waits for none. */
TEST_EACH(external_without_a_list_after, struct edge, external_edges,
	  "K-50 If event_wait_list is NULL, then [the command] does not [..] wait on any event to "
	  "complete.")
{
	const struct command c = command_open(row, QUEUE_OUT_OF_ORDER);
	cl_event gate = queues_create_gate(), done[2];

	EXPECT_EQ(clEnqueueMarkerWithWaitList(c.queue, 1, &gate, NULL), CL_SUCCESS);
	done[0] = command_enqueue(&c, NULL);
	EXPECT_EQ(external_enqueue_edge(row, c.queue, 0, NULL, 0, NULL, &done[1]), CL_SUCCESS);
	spec_undo_later(command_release_event, done[1]);
	if (spec.exact) /* PoCL's marker, which stands for no objects, waits */
		EXPECT_EQ(clWaitForEvents(1, done), CL_SUCCESS);
	queues_open_gate(gate);
	EXPECT_EQ(clWaitForEvents(2, done), CL_SUCCESS);
	command_close(&c, true);
}

TEST_EACH_PAIR(external_event_of, struct edge, external_edges, struct command_queue, command_queues,
	       "K-54 event returns an event object that identifies this particular command and can "
	       "be used to query or queue a wait for this particular command to complete.")
{
	cl_uint references = 0;
	const struct command c = command_open(row, column->kind);
	cl_event gate = queues_create_gate(), done = command_enqueue(&c, gate), behind = NULL;

	QUERY(clGetEventInfo, done, CL_EVENT_COMMAND_QUEUE, cl_command_queue, c.queue);
	QUERY(clGetEventInfo, done, CL_EVENT_CONTEXT, cl_context, spec.context);
	EXPECT_EQ(clGetEventInfo(done, CL_EVENT_REFERENCE_COUNT, sizeof(references), &references,
				 NULL),
		  CL_SUCCESS);
	EXPECT_EXACT(references, 1); /* "should be considered immediately stale" */
	kernels_add_after(plain_buffer(BYTES), BYTES, 1, done, &behind);
	EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
	queues_rest();
	EXPECT(command_status(behind) > CL_COMPLETE);
	queues_open_gate(gate);
	EXPECT_EQ(clWaitForEvents(1, &behind), CL_SUCCESS);
	EXPECT_EQ(command_status(done), CL_COMPLETE);
	EXPECT_EQ(clReleaseEvent(behind), CL_SUCCESS);
	command_close(&c, true);
}

TEST_EACH(external_times_of, struct edge, external_edges,
	  "K-54 event returns an event object that identifies this particular command and can be "
	  "used to query or queue a wait for this particular command to complete.")
{
	const struct command c = command_open(row, QUEUE_PROFILING);
	cl_event done = command_enqueue(&c, NULL);
	cl_ulong times[4] = { 0 };

	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	for (cl_uint i = 0; i < 4; i++) {
		EXPECT_EQ(clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_QUEUED + i,
						  sizeof(times[i]), &times[i], NULL),
			  CL_SUCCESS);
		EXPECT(times[i] && (!i || times[i] >= times[i - 1]));
	}
	command_close(&c, true);
}

TEST_EACH(external_without_an_event, struct edge, external_edges,
	  "K-55 event can be NULL in which case it will not be possible for the application to "
	  "query the status of this command or queue a wait for this command to complete.")
{
	const struct command c = command_open(row, QUEUE_FIRST);

	EXPECT_EQ(command_call(&c, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(c.queue), CL_SUCCESS);
	command_close(&c, true);
}

/* Any error is right, and no error; the object works afterwards. */
TEST_EACH(external_twice, struct edge, external_edges,
	  "K-61 Each memory object must be [acquired or released] only once. [..] multiple times "
	  "[..] results in implementation-defined behavior.")
{
	const struct command c = command_open(row, QUEUE_FIRST);

	EXPECT_EQ(command_call(&c, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EXACT(command_call(&c, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EXACT(clFinish(c.queue), CL_SUCCESS);
	if (!row->is_release)
		EXPECT_EXACT(external_enqueue_edge(RELEASE, c.queue, 1, &c.mem, 0, NULL, NULL),
			     CL_SUCCESS);
	EXPECT_EXACT(clFinish(c.queue), CL_SUCCESS);
	if (spec.exact)
		external_expect_shared(c.mem, c.buf, spec.page);
}

/* Several objects by one command: two imports of one dma-buf, and another. */
TEST(external_several_objects,
     "K-48 num_mem_objects specifies the number of memory objects to [acquire or release].")
{
	struct dma_buf *buf = dma_buf_make(spec.page), *other = dma_buf_make(spec.page);
	cl_mem mems[3] = { external_buffer(buf), external_buffer(other), external_buffer(buf) };

	external_fill(buf, spec.page, 1);
	external_fill(other, spec.page, 2);
	EXPECT_EQ(external_enqueue_edge(ACQUIRE, spec.queue, 3, mems, 0, NULL, NULL), CL_SUCCESS);
	for (int i = 0; i < 3; i++)
		kernels_add(mems[i], spec.page, 1, 10);
	EXPECT_EQ(external_enqueue_edge(RELEASE, spec.queue, 3, mems, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT(external_is(buf, spec.page, 21));
	EXPECT(external_is(other, spec.page, 12));
}

/* Behind a user event, and behind a kernel that waits for one. */
TEST_EACH_PAIR(external_no_objects, struct edge, external_edges, struct command_queue,
	       command_queues,
	       "K-66 If num_mem_objects is 0 and mem_objects is NULL, the command will trivially "
	       "succeed after its event dependencies are satisfied and will update its completion "
	       "event.")
{
	cl_command_queue queue = queues_get(column->kind);
	cl_mem plain = plain_buffer(BYTES);
	cl_event gate, waits[2], done;

	if (!queue)
		test_skip("device has no %s", queue_names[column->kind]);
	for (int turn = 0; turn < 4; turn++) {
		gate = waits[0] = queues_create_gate();
		kernels_add_after(plain, BYTES, 1, gate, &waits[1]);
		EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
		EXPECT_EQ(external_enqueue_edge(row, queue, 0, NULL, 1, &waits[turn % 2], &done),
			  CL_SUCCESS);
		spec_undo_later(command_release_event, waits[1]);
		spec_undo_later(command_release_event, done);
		EXPECT_EQ(clFlush(queue), CL_SUCCESS);
		queues_rest();
		EXPECT(command_status(done) > CL_COMPLETE);
		queues_open_gate(gate);
		EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
		EXPECT_EQ(command_status(done), CL_COMPLETE);
	}
	EXPECT_EQ(external_enqueue_edge(row, queue, 0, NULL, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
}

/* Acquired by a queue of the one device, used by both, and released by the other. */
static void command_expect_two_devices(bool is_listed)
{
	const cl_device_id devices[2] = { spec.device, external_second_device() };
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, false);
	cl_command_queue queues[2];
	cl_kernel add;
	cl_mem mem;

	r.context = external_context(devices, 2);
	r.properties[2] = is_listed ? CL_MEM_DEVICE_HANDLE_LIST_KHR : 0;
	for (int i = 0; i < 2; i++) {
		queues[i] = queues_create_on(r.context, devices[i], 0);
		r.properties[3 + i] = (cl_mem_properties)(uintptr_t)devices[i];
	}
	mem = external_make_object(&r);
	add = kernels_create_in(r.context, "add");
	for (int i = 0; i < 2; i++) {
		external_fill(buf, spec.page, 1);
		EXPECT_EQ(external_enqueue_edge(ACQUIRE, queues[i], 1, &mem, 0, NULL, NULL),
			  CL_SUCCESS);
		EXPECT_EQ(clFinish(queues[i]), CL_SUCCESS);
		kernels_add_with(add, queues[1 - i], mem, spec.page, 10);
		kernels_add_with(add, queues[i], mem, spec.page, 20);
		EXPECT_EQ(external_enqueue_edge(RELEASE, queues[1 - i], 1, &mem, 0, NULL, NULL),
			  CL_SUCCESS);
		EXPECT_EQ(clFinish(queues[1 - i]), CL_SUCCESS);
		EXPECT(external_is(buf, spec.page, 31));
	}
}

static const struct command_devices {
	const char *name, *says;
	bool is_listed;
} command_devices[] = {
	{ "queue_of_a_listed_device",
	  "K-62 The [acquire or release] must be performed on a command-queue associated with a "
	  "device that was one of the devices specified via CL_MEM_DEVICE_HANDLE_LIST_KHR when the "
	  "memory object was imported",
	  true },
	{ "queue_of_any_device",
	  "K-63 If CL_MEM_DEVICE_HANDLE_LIST_KHR was not specified, the [acquire or release] can "
	  "be "
	  "performed on a command-queue associated with any device in the context.",
	  false },
	{ "listed_devices",
	  "K-64 The memory object will be [acquired or released] for all devices specified via "
	  "CL_MEM_DEVICE_HANDLE_LIST_KHR when the memory object was imported",
	  true },
	{ "all_devices",
	  "K-65 If CL_MEM_DEVICE_HANDLE_LIST_KHR was not specified, the memory object will be "
	  "[acquired or released] for all devices in the context.",
	  false },
	{ "default_devices",
	  "K-16 If CL_MEM_DEVICE_HANDLE_LIST_KHR is not specified as part of properties, the "
	  "memory "
	  "object created by clCreateBufferWithProperties or clCreateImageWithProperties is by "
	  "default associated with all devices in the context.",
	  false },
};

TEST_EACH(external, struct command_devices, command_devices, command_devices[i].says)
{
	command_expect_two_devices(row->is_listed);
}

/* An object of two devices' context, associated with the one. */
TEST_EACH(external_queue_of_unlisted_device, struct edge, external_edges,
	  "K-70 CL_INVALID_COMMAND_QUEUE if device associated with command_queue is not one of the "
	  "devices specified by CL_MEM_DEVICE_HANDLE_LIST_KHR at the time of creating one or more "
	  "of mem_objects")
{
	const cl_device_id devices[2] = { spec.device, external_second_device() };
	struct external_request r = external_request(dma_buf_make(spec.page), false);
	cl_command_queue right, wrong;
	cl_mem mem;

	r.context = external_context(devices, 2);
	right = queues_create_on(r.context, devices[1], 0);
	wrong = queues_create_on(r.context, devices[0], 0);
	r.properties[2] = CL_MEM_DEVICE_HANDLE_LIST_KHR;
	r.properties[3] = (cl_mem_properties)(uintptr_t)devices[1];
	mem = external_make_object(&r);
	if (row->is_release)
		EXPECT_EQ(external_enqueue_edge(ACQUIRE, right, 1, &mem, 0, NULL, NULL),
			  CL_SUCCESS);
	EXPECT_EQ(external_enqueue_edge(row, wrong, 1, &mem, 0, NULL, NULL),
		  CL_INVALID_COMMAND_QUEUE);
	EXPECT_EQ(external_enqueue_edge(row, right, 1, &mem, 0, NULL, NULL), CL_SUCCESS);
	if (!row->is_release)
		EXPECT_EQ(external_enqueue_edge(RELEASE, right, 1, &mem, 0, NULL, NULL),
			  CL_SUCCESS);
	EXPECT_EQ(clFinish(right), CL_SUCCESS);
}

TEST_EACH(external_queue_of_other_context, struct edge, external_edges,
	  "K-71 CL_INVALID_COMMAND_QUEUE if one or more of mem_objects belong to a context that "
	  "does not contain a device associated with command_queue.")
{
	const struct command c = command_open(row, QUEUE_FIRST);
	const cl_device_id second = external_second_device();
	cl_context context = external_context(&second, 1);

	EXPECT_EQ(external_enqueue_edge(row, queues_create_on(context, second, 0), 1, &c.mem, 0,
					NULL, NULL),
		  CL_INVALID_COMMAND_QUEUE);
	command_close(&c, false);
}

/* Wrong arguments; and each is wrong at the acquire of an object, and at its release. */
enum command_word { RIGHT, NONE_GIVEN, NULL_ONE, OTHER };

static const struct command_error {
	const char *name, *says;
	cl_int error;
	cl_uint count, num_wait;
	enum command_word queue, mems, wait; /* OTHER: a plain buffer; a failed event */
} command_errors[] = {
	{ "no_count", K_67, CL_INVALID_VALUE, 0, 0, RIGHT, RIGHT, NONE_GIVEN },
	{ "no_list", K_67, CL_INVALID_VALUE, 1, 0, RIGHT, NONE_GIVEN, NONE_GIVEN },
	{ "plain_buffer", K_68, CL_INVALID_MEM_OBJECT, 1, 0, RIGHT, OTHER, NONE_GIVEN },
	{ "plain_buffer_second", K_68, CL_INVALID_MEM_OBJECT, 2, 0, RIGHT, RIGHT, NONE_GIVEN },
	{ "null_object", K_68, CL_INVALID_MEM_OBJECT, 1, 0, RIGHT, NULL_ONE, NONE_GIVEN },
	{ "null_queue",
	  "K-69 CL_INVALID_COMMAND_QUEUE if command_queue is not a valid command-queue",
	  CL_INVALID_COMMAND_QUEUE, 1, 0, NULL_ONE, RIGHT, NONE_GIVEN },
	{ "no_events",
	  "K-72 CL_INVALID_EVENT_WAIT_LIST if event_wait_list is NULL and "
	  "num_events_in_wait_list is not 0",
	  CL_INVALID_EVENT_WAIT_LIST, 1, 1, RIGHT, RIGHT, NONE_GIVEN },
	{ "events_without_a_count",
	  "K-73 CL_INVALID_EVENT_WAIT_LIST if event_wait_list is not NULL and "
	  "num_events_in_wait_list is 0",
	  CL_INVALID_EVENT_WAIT_LIST, 1, 0, RIGHT, RIGHT, OTHER },
	{ "null_event",
	  "K-74 CL_INVALID_EVENT_WAIT_LIST if event objects in event_wait_list are not valid "
	  "events.",
	  CL_INVALID_EVENT_WAIT_LIST, 1, 1, RIGHT, RIGHT, NULL_ONE },
	{ "failed_event",
	  "K-75 CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST if the execution status of any of the "
	  "events in event_wait_list is a negative integer value.",
	  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, 1, 1, RIGHT, RIGHT, OTHER },
};

TEST_EACH_PAIR(external_error, struct command_error, command_errors, struct edge, external_edges,
	       command_errors[i / WIDTH_OF_external_error].says)
{
	const struct command c = command_open(column, QUEUE_FIRST);
	const cl_event gate = queues_create_gate();
	const cl_event *waits[] = { NULL, NULL, &(cl_event){ NULL }, &gate };
	const cl_mem right[2] = { c.mem, plain_buffer(BYTES) };
	const cl_mem *mems[] = { right, NULL, &(cl_mem){ NULL }, right + 1 };

	EXPECT_EQ(clSetUserEventStatus(gate, -1), CL_SUCCESS);
	EXPECT_EQ(external_enqueue_edge(column, row->queue ? NULL : c.queue, row->count,
					mems[row->mems], row->num_wait, waits[row->wait], NULL),
		  row->error);
	EXPECT_EQ(clFinish(c.queue), CL_SUCCESS);
	command_close(&c, false);
}

/* The event fails after the call. */
TEST_EACH(external_list_fails_of, struct edge, external_edges,
	  "K-49 event_wait_list points to the list of events that need to complete before [the "
	  "command] can be executed.")
{
	const struct command c = command_open(row, QUEUE_SECOND);
	cl_event gate = queues_create_gate(), done = command_enqueue(&c, gate);

	EXPECT_EQ(clSetUserEventStatus(gate, -1), CL_SUCCESS);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(command_status(done) < 0);
}

/* One of the sixteen calls, while the object is acquired. */
static void command_expect_call(const struct call_row *row, bool part)
{
	const struct call_form form = { .name = row->name, .part = part, .quiet = true };
	const struct object_form made = call_object_form(row, &form, EXTERNAL_MEMORY);
	struct object o;
	struct call c;

	object_make_form(&o, &made);
	dma_buf_begin(o.buf);
	call_prepare(&c, row, &o, &form);
	dma_buf_end(o.buf);
	external_run_edge(ACQUIRE, o.import);
	EXPECT_EQ(row->run(&c), CL_SUCCESS);
	EXPECT_EQ(clFinish(c.queue), CL_SUCCESS);
	if (c.mapped)
		EXPECT_EQ(call_use_mapped(&c), CL_SUCCESS);
	external_run_edge(RELEASE, o.import);
	dma_buf_begin(o.buf);
	EXPECT(call_has_moved(&c, row));
	EXPECT(object_padding_is_intact(&o));
	dma_buf_end(o.buf);
	undo_all();
}

TEST_EACH(external_host_access, struct call_row, call_rows.all,
	  "K-83 Once a memory object created from a dma_buf has been acquired with "
	  "clEnqueueAcquireExternalMemObjectsKHR, all access, including host access should be done "
	  "through OpenCL, until a call to clEnqueueReleaseExternalMemObjectsKHR has completed.")
{
	if (row->shape == IMAGE)
		external_need_linear();
	command_expect_call(row, false);
	command_expect_call(row, true);
}

/* A sub-buffer of an acquired buffer is acquired; whether it is so by itself is open. */
TEST(external_sub_buffer, "K-58 This is to guarantee that the state of the memory objects is "
			  "up-to-date and they are accessible to OpenCL.")
{
	struct object o;
	cl_int error;

	object_make(&o, SUB_BUFFER, EXTERNAL_MEMORY, CL_MEM_READ_WRITE);
	dma_buf_begin(o.buf);
	object_fill(&o, 1);
	dma_buf_end(o.buf);
	external_run_edge(ACQUIRE, o.import);
	kernels_add(o.mem, BYTES, 1, 10);
	external_run_edge(RELEASE, o.import);
	dma_buf_begin(o.buf);
	EXPECT(object_is(&o, 11));
	EXPECT(object_padding_is_intact(&o));
	dma_buf_end(o.buf);
	error = external_enqueue_edge(ACQUIRE, spec.queue, 1, &o.mem, 0, NULL, NULL);
	EXPECT(error == CL_SUCCESS || error == CL_INVALID_MEM_OBJECT);
	EXPECT_EXACT(error, CL_SUCCESS);
	if (!error)
		external_run_edge(RELEASE, o.mem);
}

/* The program's handle goes while commands wait. */
TEST(external_released_while_in_use,
     "K-85 It owns a reference to the underlying memory resource represented by its memory object.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	const struct external_request r = external_request(buf, false);
	cl_event gate = queues_create_gate(), done = NULL;
	cl_int error = 1;
	cl_mem mem = external_create_object(&r, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	external_fill(buf, spec.page, 1);
	EXPECT_EQ(external_enqueue_edge(ACQUIRE, spec.queue, 1, &mem, 1, &gate, NULL), CL_SUCCESS);
	kernels_add_after(mem, spec.page, 10, NULL, &done);
	EXPECT_EQ(external_enqueue_edge(RELEASE, spec.queue, 1, &mem, 1, &done, NULL), CL_SUCCESS);
	EXPECT_EQ(clReleaseEvent(done), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
	queues_open_gate(gate);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT(external_is(buf, spec.page, 11));
}
