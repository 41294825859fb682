/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sixteen calls in both versions: before 1.1.0 they fail, from 1.1.0 on they work.  The tests
 * compare the transferred bytes.
 */
#include <pthread.h>
#include <time.h>

#include "calls.h"
#include "kernels.h"

static const struct call_form host_access_forms[] = {
	{ .name = "all bytes" },
	{ .name = "a part", .part = true },
	{ .name = "a part, without blocking", .part = true, .returns = true },
	{ .name = "behind an event", .waits = true, .returns = true },
	{ .name = "a part, out of order, behind an event",
	  .part = true,
	  .waits = true,
	  .returns = true,
	  .queue = QUEUE_OUT_OF_ORDER },
	{ .name = "a part, with profiling", .part = true, .queue = QUEUE_PROFILING },
	{ .name = "on a second queue", .returns = true, .queue = QUEUE_SECOND },
	{ .name = "a part, without outputs", .part = true, .quiet = true },
	{ .name = "a part of an import inside of a page", .part = true, .in_page = true },
	{ .name = "an import inside of a page, behind an event",
	  .in_page = true,
	  .waits = true,
	  .returns = true },
	{ .name = "a part, blocking behind an event", .part = true, .waits = true },
	{ .name = "a part, with another import", .part = true, .imported = true },
	{ .name = "a part, mapped to read", .part = true, .map = CL_MAP_READ },
	{ .name = "a part, mapped to write", .part = true, .map = CL_MAP_WRITE },
	{ .name = "a part, mapped to be written anew",
	  .part = true,
	  .map = CL_MAP_WRITE_INVALIDATE_REGION },
	{ .name = "a part of an image made with properties",
	  .part = true,
	  .with_properties = true },
};

/* Prints the form in which the call fails. */
static cl_int host_access_say(const struct call_form *form, cl_int error)
{
	if (error)
		spec_note("%s", form->name);
	return error;
}

static void host_access_expect(const struct call_form *form, bool holds)
{
	host_access_say(form, !holds);
	EXPECT(holds);
}

static void host_access_expect_command(const struct call *c, cl_command_type type)
{
	QUERY(clGetEventInfo, c->event, CL_EVENT_COMMAND_TYPE, cl_command_type, type);
	QUERY(clGetEventInfo, c->event, CL_EVENT_COMMAND_QUEUE, cl_command_queue, c->queue);
	QUERY(clGetEventInfo, c->event, CL_EVENT_CONTEXT, cl_context, spec.context);
}

static void host_access_expect_times(cl_event event)
{
	cl_ulong start = 0, end = 0;

	EXPECT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start,
					  NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL),
		  CL_SUCCESS);
	EXPECT(start && start <= end);
}

static void host_access_finish_event(struct call *c, const struct call_row *row)
{
	EXPECT(c->event != NULL);
	EXPECT_EQ(host_access_say(c->form, clWaitForEvents(1, &c->event)), CL_SUCCESS);
	if (row->shape != IMAGE_1D) /* PoCL 3.1 names the calls for buffers */
		host_access_expect_command(c, call_command_type(row));
	if (c->form->queue == QUEUE_PROFILING)
		host_access_expect_times(c->event);
	EXPECT_EQ(clReleaseEvent(c->event), CL_SUCCESS);
}

/* The host writes the mapped bytes before the unmap. */
static bool host_access_changes_early(const struct call_row *row)
{
	return row->run == call_clEnqueueUnmapMemObject;
}

/* The call has not run: the object is as before, and the bytes that the host writes now count. */
static void host_access_open_gate(struct call *c, const struct call_row *row)
{
	cl_int status = CL_QUEUED;

	EXPECT_EQ(clFlush(c->queue), CL_SUCCESS);
	EXPECT_EQ(clGetEventInfo(c->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				 &status, NULL),
		  CL_SUCCESS);
	host_access_expect(c->form, status > CL_COMPLETE);
	if (row->role == SOURCE)
		object_fill(c->object, OBJECT_SEED);
	else if (!host_access_changes_early(row))
		host_access_expect(c->form, object_is(c->object, OBJECT_SEED));
	queues_open_gate(c->gate);
}

static void host_access_finish(struct call *c, const struct call_row *row)
{
	if (c->gate && c->form->returns)
		host_access_open_gate(c, row);
	if (!c->form->quiet)
		host_access_finish_event(c, row);
	EXPECT_EQ(clFinish(c->queue), CL_SUCCESS);
	if (c->mapped)
		EXPECT_EQ(host_access_say(c->form, call_use_mapped(c)), CL_SUCCESS);
}

static atomic_bool is_opened;

/*
 * The call that blocks returns with the bytes of now, and not before.  The pause only makes it likely
 * that the call is there first.
 */
static void *host_access_open_later(void *call)
{
	struct call *c = call;

	nanosleep(&(struct timespec){ 0, 20 * 1000 * 1000 }, NULL);
	if (c->role == SOURCE)
		object_fill(c->object, OBJECT_SEED);
	atomic_store(&is_opened, true);
	clSetUserEventStatus(c->gate, CL_COMPLETE);
	return NULL;
}

static cl_int host_access_run(const struct call_row *row, struct call *c)
{
	pthread_t opener;
	cl_int error;

	if (!c->gate || c->form->returns)
		return row->run(c);
	atomic_store(&is_opened, false);
	EXPECT_EQ(pthread_create(&opener, NULL, host_access_open_later, c), 0);
	error = row->run(c);
	if (!error)
		host_access_expect(c->form, atomic_load(&is_opened));
	if (!error && row->role == SOURCE)
		host_access_expect(c->form, call_has_moved(c, row));
	pthread_join(opener, NULL);
	return error;
}

static void host_access_try(const struct call_row *row, enum memory_type type,
			    const struct call_form *form)
{
	const struct object_form made = call_object_form(row, form, type);
	struct object o;
	struct call c;

	object_make_form(&o, &made);
	call_prepare(&c, row, &o, form);
	if (c.gate && row->role == SOURCE)
		object_fill(&o, OBJECT_SEED + 1);
	EXPECT_EQ(host_access_say(form, host_access_run(row, &c)), CL_SUCCESS);
	host_access_finish(&c, row);
	if (form->map != CL_MAP_READ)
		host_access_expect(form, call_has_moved(&c, row));
	host_access_expect(form, object_padding_is_intact(&o));
	undo_all();
}

static void host_access_expect_allowed(const struct call_row *row, enum memory_type type)
{
	const size_t count = sizeof(host_access_forms) / sizeof(host_access_forms[0]);

	need_1_1();
	need_shape(row->shape);
	for (size_t i = 0; i < count; i++) {
		const struct call_form *form = &host_access_forms[i];

		if (call_takes_form(row, form, type))
			host_access_try(row, type, form);
	}
}

/* Before the version, in brief: forbidden.c makes the calls in every form. */
static void host_access_expect_forbidden(const struct call_row *rows, size_t count)
{
	static const struct call_form all = { .name = "all bytes" };

	need_prior_to_1_1();
	need_host();
	for (size_t i = 0; i < count; i++) {
		const struct object_form made = call_object_form(&rows[i], &all, HOST_MEMORY);
		struct object o;
		struct call c;

		if (object_why_no_form(&made))
			continue;
		object_make_form(&o, &made);
		call_prepare(&c, &rows[i], &o, &all);
		EXPECT_EQ(rows[i].run(&c), CL_INVALID_OPERATION);
		EXPECT(object_is(&o, OBJECT_SEED));
		undo_all();
	}
}

#define R12_20(function)                                                                      \
	"R12-20:" #function " Prior to version 1.1.0, CL_INVALID_OPERATION when an imported " \
	"memory object has been passed to one of the following API functions: " #function

#define PRIOR_TEST(id, function)                                                              \
	TEST(prior_##id, R12_20(function))                                                    \
	{                                                                                     \
		host_access_expect_forbidden(call_rows.id,                                    \
					     sizeof(call_rows.id) / sizeof(call_rows.id[0])); \
	}

PRIOR_TEST(map_buffer, clEnqueueMapBuffer)
PRIOR_TEST(map_image, clEnqueueMapImage)
PRIOR_TEST(unmap_mem_object, clEnqueueUnmapMemObject)
PRIOR_TEST(read_image, clEnqueueReadImage)
PRIOR_TEST(write_image, clEnqueueWriteImage)
PRIOR_TEST(read_buffer, clEnqueueReadBuffer)
PRIOR_TEST(read_buffer_rect, clEnqueueReadBufferRect)
PRIOR_TEST(write_buffer, clEnqueueWriteBuffer)
PRIOR_TEST(write_buffer_rect, clEnqueueWriteBufferRect)
PRIOR_TEST(copy_buffer, clEnqueueCopyBuffer)
PRIOR_TEST(copy_buffer_rect, clEnqueueCopyBufferRect)
PRIOR_TEST(copy_buffer_to_image, clEnqueueCopyBufferToImage)
PRIOR_TEST(copy_image_to_buffer, clEnqueueCopyImageToBuffer)
PRIOR_TEST(copy_image, clEnqueueCopyImage)
PRIOR_TEST(fill_buffer, clEnqueueFillBuffer)
PRIOR_TEST(fill_image, clEnqueueFillImage)

TEST_EACH_AS(allowed_map_buffer_rows, "allowed", struct call_row, call_rows.map_buffer,
	     R12_20(clEnqueueMapBuffer))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_map_image_rows, "allowed", struct call_row, call_rows.map_image,
	     R12_20(clEnqueueMapImage))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_unmap_mem_object_rows, "allowed", struct call_row, call_rows.unmap_mem_object,
	     R12_20(clEnqueueUnmapMemObject))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_read_image_rows, "allowed", struct call_row, call_rows.read_image,
	     R12_20(clEnqueueReadImage))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_write_image_rows, "allowed", struct call_row, call_rows.write_image,
	     R12_20(clEnqueueWriteImage))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_read_buffer_rows, "allowed", struct call_row, call_rows.read_buffer,
	     R12_20(clEnqueueReadBuffer))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_read_buffer_rect_rows, "allowed", struct call_row, call_rows.read_buffer_rect,
	     R12_20(clEnqueueReadBufferRect))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_write_buffer_rows, "allowed", struct call_row, call_rows.write_buffer,
	     R12_20(clEnqueueWriteBuffer))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_write_buffer_rect_rows, "allowed", struct call_row,
	     call_rows.write_buffer_rect, R12_20(clEnqueueWriteBufferRect))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_copy_buffer_rows, "allowed", struct call_row, call_rows.copy_buffer,
	     R12_20(clEnqueueCopyBuffer))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_copy_buffer_rect_rows, "allowed", struct call_row, call_rows.copy_buffer_rect,
	     R12_20(clEnqueueCopyBufferRect))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_copy_buffer_to_image_rows, "allowed", struct call_row,
	     call_rows.copy_buffer_to_image, R12_20(clEnqueueCopyBufferToImage))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_copy_image_to_buffer_rows, "allowed", struct call_row,
	     call_rows.copy_image_to_buffer, R12_20(clEnqueueCopyImageToBuffer))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_copy_image_rows, "allowed", struct call_row, call_rows.copy_image,
	     R12_20(clEnqueueCopyImage))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_fill_buffer_rows, "allowed", struct call_row, call_rows.fill_buffer,
	     R12_20(clEnqueueFillBuffer))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_fill_image_rows, "allowed", struct call_row, call_rows.fill_image,
	     R12_20(clEnqueueFillImage))
{
	host_access_expect_allowed(row, HOST_MEMORY);
}

/* Bytes written by a call are visible to other calls, and in the host's memory. */
TEST(allowed_on_host_memory, "R12-35 Version 1.1.0 of cl_arm_import_memory adds support for host "
			     "access to imported memory for all memory types.")
{
	unsigned char *memory = spec_map_pages(2), *seen = spec_map_pages(2);
	size_t size = 2 * spec.page;
	cl_mem mem;

	need_1_1();
	mem = spec_import_host(CL_MEM_READ_WRITE, memory, size);
	spec_fill_memory(seen, size, 4);
	plain_write(mem, seen, size);
	EXPECT(spec_memory_is(memory, size, 4));
	spec_fill_memory(memory, size, 9);
	plain_read(mem, seen, size);
	EXPECT(spec_memory_is(seen, size, 9));
}

TEST_EACH(allowed_dma_buf, struct call_row, call_rows.all,
	  "R12-35 Version 1.1.0 of cl_arm_import_memory adds support for host access to imported "
	  "memory for all memory types.")
{
	host_access_expect_allowed(row, DMA_BUF_MEMORY);
}
