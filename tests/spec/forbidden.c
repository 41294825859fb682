/* SPDX-License-Identifier: Apache-2.0 */
/* Before version 1.1.0, sixteen calls fail with CL_INVALID_OPERATION and have no effect. */
#include "calls.h"
#include "kernels.h"

/* Objects that are made in different ways. */
static const struct call_form forbidden_objects[] = {
	{ .name = "an import" },
	{ .name = "an import inside of a page", .in_page = true },
	{ .name = "an image made with properties", .with_properties = true },
	{ .name = "two imports", .imported = true },
	{ .name = "an import mapped to read", .map = CL_MAP_READ },
	{ .name = "an import mapped to be written anew", .map = CL_MAP_WRITE_INVALIDATE_REGION },
};

static const cl_event forbidden_event = (cl_event)(uintptr_t)0x5a5a5a5a;
enum { FORBIDDEN_PITCH = 4711 };

/* climport does not touch the outputs; a driver may clear outputs without a value. */
static bool forbidden_outputs_are_untouched(const struct call *c)
{
	if (spec.exact && (c->event != forbidden_event || c->row_pitch != FORBIDDEN_PITCH ||
			   c->slice_pitch != FORBIDDEN_PITCH))
		return false;
	return (c->event == forbidden_event || !c->event) && !c->mapped;
}

static void forbidden_say(const struct call_form *form)
{
	spec_note("%s: %s, %s, %s, %s, %s", form->name, queue_names[form->queue],
		  form->returns ? "CL_FALSE" : "CL_TRUE",
		  form->waits ? "with a wait list" : "without a wait list",
		  form->quiet ? "without outputs" : "with outputs",
		  form->part ? "a part" : "all bytes");
}

static void forbidden_try(struct call *c, const struct call_row *row, const struct call_form *form)
{
	cl_int error;

	c->form = form;
	c->event = forbidden_event;
	c->row_pitch = c->slice_pitch = FORBIDDEN_PITCH;
	error = row->run(c);
	if (error != CL_INVALID_OPERATION || !forbidden_outputs_are_untouched(c))
		forbidden_say(form);
	EXPECT_EQ(error, CL_INVALID_OPERATION);
	EXPECT(forbidden_outputs_are_untouched(c));
}

/* Blocking or not, behind an event or not, with outputs or without, all bytes or a part. */
static void forbidden_try_arguments(struct call *c, const struct call_row *row,
				    struct call_form form, cl_event complete)
{
	for (unsigned int bits = 0; bits < 16; bits++) {
		form.returns = bits & 1;
		form.waits = bits & 2;
		form.quiet = bits & 4;
		form.part = bits & 8;
		call_set_part(c, row, form.part);
		c->gate = form.waits ? complete : NULL;
		forbidden_try(c, row, &form);
	}
}

static void forbidden_try_queues(struct call *c, const struct call_row *row, struct call_form form)
{
	cl_event complete = queues_create_gate();

	queues_open_gate(complete);
	for (form.queue = 0; form.queue < QUEUE_KINDS; form.queue++) {
		c->queue = queues_get(form.queue);
		if (!c->queue)
			continue;
		forbidden_try_arguments(c, row, form, complete);
		EXPECT_EQ(clFinish(c->queue), CL_SUCCESS);
	}
}

static void forbidden_try_object(const struct call_row *row, enum memory_type type,
				 const struct call_form *form)
{
	const struct object_form made = call_object_form(row, form, type);
	struct object o;
	struct call c;

	object_make_form(&o, &made);
	call_prepare(&c, row, &o, form);
	forbidden_try_queues(&c, row, *form);
	EXPECT(object_is(&o, OBJECT_SEED));
	EXPECT(object_padding_is_intact(&o));
	if (row->role == SOURCE || row->partner != NONE)
		EXPECT(call_other_is(&c, row, OTHER_SEED));
	undo_all();
}

static void forbidden_expect(const struct call_row *row, enum memory_type type)
{
	const size_t count = sizeof(forbidden_objects) / sizeof(forbidden_objects[0]);

	need_prior_to_1_1();
	need_shape(row->shape);
	for (size_t i = 0; i < count; i++) {
		const struct call_form *form = &forbidden_objects[i];

		if (call_takes_form(row, form, type))
			forbidden_try_object(row, type, form);
	}
}

TEST_EACH_AS(
	forbidden_map_buffer_rows, "forbidden", struct call_row, call_rows.map_buffer,
	"R6-29:clEnqueueMapBuffer CL_INVALID_OPERATION when an imported memory object has been "
	"passed to one of the following API functions: clEnqueueMapBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_map_image_rows, "forbidden", struct call_row, call_rows.map_image,
	     "R6-29:clEnqueueMapImage CL_INVALID_OPERATION when an imported memory object has been "
	     "passed to one of the following API functions: clEnqueueMapImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_unmap_mem_object_rows, "forbidden", struct call_row, call_rows.unmap_mem_object,
	"R6-29:clEnqueueUnmapMemObject CL_INVALID_OPERATION when an imported memory object has "
	"been passed to one of the following API functions: clEnqueueUnmapMemObject")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_read_image_rows, "forbidden", struct call_row, call_rows.read_image,
	"R6-29:clEnqueueReadImage CL_INVALID_OPERATION when an imported memory object has been "
	"passed to one of the following API functions: clEnqueueReadImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_write_image_rows, "forbidden", struct call_row, call_rows.write_image,
	     "R6-29:clEnqueueWriteImage CL_INVALID_OPERATION when an imported memory object has "
	     "been passed to one of the following API functions: clEnqueueWriteImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_read_buffer_rows, "forbidden", struct call_row, call_rows.read_buffer,
	     "R6-29:clEnqueueReadBuffer CL_INVALID_OPERATION when an imported memory object has "
	     "been passed to one of the following API functions: clEnqueueReadBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_read_buffer_rect_rows, "forbidden", struct call_row, call_rows.read_buffer_rect,
	"R6-29:clEnqueueReadBufferRect CL_INVALID_OPERATION when an imported memory object has "
	"been passed to one of the following API functions: clEnqueueReadBufferRect")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_write_buffer_rows, "forbidden", struct call_row, call_rows.write_buffer,
	     "R6-29:clEnqueueWriteBuffer CL_INVALID_OPERATION when an imported memory object has "
	     "been passed to one of the following API functions: clEnqueueWriteBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_write_buffer_rect_rows, "forbidden", struct call_row,
	     call_rows.write_buffer_rect,
	     "R6-29:clEnqueueWriteBufferRect CL_INVALID_OPERATION when an imported memory object "
	     "has been passed to one of the following API functions: clEnqueueWriteBufferRect")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_copy_buffer_rows, "forbidden", struct call_row, call_rows.copy_buffer,
	     "R6-29:clEnqueueCopyBuffer CL_INVALID_OPERATION when an imported memory object has "
	     "been passed to one of the following API functions: clEnqueueCopyBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_copy_buffer_rect_rows, "forbidden", struct call_row, call_rows.copy_buffer_rect,
	"R6-29:clEnqueueCopyBufferRect CL_INVALID_OPERATION when an imported memory object has "
	"been passed to one of the following API functions: clEnqueueCopyBufferRect")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_copy_buffer_to_image_rows, "forbidden", struct call_row,
	     call_rows.copy_buffer_to_image,
	     "R6-29:clEnqueueCopyBufferToImage CL_INVALID_OPERATION when an imported memory object "
	     "has been passed to one of the following API functions: clEnqueueCopyBufferToImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_copy_image_to_buffer_rows, "forbidden", struct call_row,
	     call_rows.copy_image_to_buffer,
	     "R6-29:clEnqueueCopyImageToBuffer CL_INVALID_OPERATION when an imported memory object "
	     "has been passed to one of the following API functions: clEnqueueCopyImageToBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_copy_image_rows, "forbidden", struct call_row, call_rows.copy_image,
	"R6-29:clEnqueueCopyImage CL_INVALID_OPERATION when an imported memory object has been "
	"passed to one of the following API functions: clEnqueueCopyImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_fill_buffer_rows, "forbidden", struct call_row, call_rows.fill_buffer,
	     "R6-29:clEnqueueFillBuffer CL_INVALID_OPERATION when an imported memory object has "
	     "been passed to one of the following API functions: clEnqueueFillBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_fill_image_rows, "forbidden", struct call_row, call_rows.fill_image,
	"R6-29:clEnqueueFillImage CL_INVALID_OPERATION when an imported memory object has been "
	"passed to one of the following API functions: clEnqueueFillImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

/* The application has released the import; a sub-buffer of the import is still alive. */
TEST(forbidden_when_the_import_is_released,
     "R6-30 (they can't be used with imported memory objects)")
{
	unsigned char *memory = spec_map_pages(2), byte = 0;
	const cl_buffer_region region = { 0, spec.page };
	cl_int error;
	cl_mem mem, sub;

	need_prior_to_1_1();
	need_host();
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory, 2 * spec.page, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	sub = released_later(
		clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clEnqueueReadBuffer(spec.queue, sub, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	expect_shared(sub, memory, spec.page);
}

/* The rule is about imports: other buffers in the context work. */
static void forbidden_expect_plain(cl_mem mem)
{
	unsigned char sent[BYTES], seen[BYTES] = { 0 };

	spec_fill_memory(sent, BYTES, 5);
	plain_write(mem, sent, BYTES);
	plain_read(mem, seen, BYTES);
	EXPECT(!memcmp(sent, seen, BYTES));
}

TEST(plain_buffers_stay_allowed, "R6-30 (they can't be used with imported memory objects)")
{
	spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	forbidden_expect_plain(plain_buffer(BYTES));
}

TEST(plain_buffers_over_imported_memory_stay_allowed,
     "R6-30 (they can't be used with imported memory objects)")
{
	unsigned char *memory = spec_map_pages(1);
	cl_int error = 1;
	cl_mem mem;

	spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	mem = released_later(clCreateBuffer(spec.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
					    spec.page, memory, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	forbidden_expect_plain(mem);
}

/* A new object often has the address of the object freed last. */
static void expect_forgotten(enum shape shape)
{
	for (int i = 0; i < 50; i++) {
		struct object o;

		object_make(&o, shape, HOST_MEMORY, CL_MEM_READ_WRITE);
		undo_all();
		forbidden_expect_plain(plain_buffer(BYTES));
		undo_all();
	}
}

TEST(released_imports_are_forgotten, "R6-30 (they can't be used with imported memory objects)")
{
	expect_forgotten(BUFFER);
}

TEST(released_sub_buffers_are_forgotten, "R6-30 (they can't be used with imported memory objects)")
{
	expect_forgotten(SUB_BUFFER);
}

TEST(released_images_are_forgotten, "R6-30 (they can't be used with imported memory objects)")
{
	expect_forgotten(IMAGE);
}

TEST(released_1d_images_are_forgotten, "R6-30 (they can't be used with imported memory objects)")
{
	expect_forgotten(IMAGE_1D);
}

TEST_EACH(forbidden_dma_buf, struct call_row, call_rows.all,
	  "R6-30 (they can't be used with imported memory objects)")
{
	forbidden_expect(row, DMA_BUF_MEMORY);
}
