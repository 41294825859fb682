/* SPDX-License-Identifier: Apache-2.0 */
/* cl_khr_command_buffer: the recording of copies and fills, permitted or forbidden. */
#include "command_list.h"

#include <sys/mman.h>
#include <unistd.h>

static const size_t origin[3], pixel[3] = { 1, 1, 1 }, bytes[3] = { 4, 1, 1 };

/*
 * The types of the recording functions if a driver's recording functions take a list of properties.
 * The addresses do not differ.
 */
#define BEHIND_PROPERTIES cl_command_buffer_khr, cl_command_queue, const cl_properties *, cl_mem
#define BEFORE_SYNC \
	cl_uint, const cl_sync_point_khr *, cl_sync_point_khr *, cl_mutable_command_khr *
typedef cl_int copy_fn(BEHIND_PROPERTIES, cl_mem, size_t, size_t, size_t, BEFORE_SYNC);
typedef cl_int rect_fn(BEHIND_PROPERTIES, cl_mem, const size_t *, const size_t *, const size_t *,
		       size_t, size_t, size_t, size_t, BEFORE_SYNC);
typedef cl_int to_image_fn(BEHIND_PROPERTIES, cl_mem, size_t, const size_t *, const size_t *,
			   BEFORE_SYNC);
typedef cl_int image_fn(BEHIND_PROPERTIES, cl_mem, const size_t *, const size_t *, const size_t *,
			BEFORE_SYNC);
typedef cl_int from_image_fn(BEHIND_PROPERTIES, cl_mem, const size_t *, const size_t *, size_t,
			     BEFORE_SYNC);
typedef cl_int fill_fn(BEHIND_PROPERTIES, const void *, size_t, size_t, size_t, BEFORE_SYNC);
typedef cl_int fill_image_fn(BEHIND_PROPERTIES, const void *, const size_t *, const size_t *,
			     BEFORE_SYNC);
#define WITH_PROPERTIES(form, f) ((form *)(void *)khr.f)

/* A buffer and an image: imports, or the other side of copies. */
struct pair {
	cl_mem buffer, image;
};

enum recorder { COPY, COPY_RECT, COPY_TO_IMAGE, COPY_IMAGE, COPY_FROM_IMAGE, FILL, FILL_IMAGE };

/* The recording functions.  The objects under test are the source or the target. */
static const struct form {
	const char *name;
	enum recorder recorder;
	bool is_target;
} forms[] = {
	{ "copy_from", COPY, false },
	{ "copy_to", COPY, true },
	{ "rect_from", COPY_RECT, false },
	{ "rect_to", COPY_RECT, true },
	{ "buffer_to_image_from", COPY_TO_IMAGE, false },
	{ "buffer_to_image_to", COPY_TO_IMAGE, true },
	{ "image_from", COPY_IMAGE, false },
	{ "image_to", COPY_IMAGE, true },
	{ "image_to_buffer_from", COPY_FROM_IMAGE, false },
	{ "image_to_buffer_to", COPY_FROM_IMAGE, true },
	{ "fill", FILL, true },
	{ "fill_image", FILL_IMAGE, true },
};

#define NO_SYNC 0, NULL, point, NULL

/* form_record() for a driver whose recording functions take a list of properties. */
static cl_int form_record_with_properties(enum recorder recorder, cl_command_buffer_khr list,
					  struct pair from, struct pair to,
					  cl_sync_point_khr *point)
{
	static const cl_uint zero[4];

	switch (recorder) {
	case COPY:
		return WITH_PROPERTIES(copy_fn, copy)(list, NULL, NULL, from.buffer, to.buffer, 0,
						      0, 4, NO_SYNC);
	case COPY_RECT:
		return WITH_PROPERTIES(rect_fn, rect)(list, NULL, NULL, from.buffer, to.buffer,
						      origin, origin, bytes, 0, 0, 0, 0, NO_SYNC);
	case COPY_TO_IMAGE:
		return WITH_PROPERTIES(to_image_fn, to_image)(list, NULL, NULL, from.buffer,
							      to.image, 0, origin, pixel, NO_SYNC);
	case COPY_IMAGE:
		return WITH_PROPERTIES(image_fn, image)(list, NULL, NULL, from.image, to.image,
							origin, origin, pixel, NO_SYNC);
	case COPY_FROM_IMAGE:
		return WITH_PROPERTIES(from_image_fn, from_image)(
			list, NULL, NULL, from.image, to.buffer, origin, pixel, 0, NO_SYNC);
	case FILL:
		return WITH_PROPERTIES(fill_fn, fill)(list, NULL, NULL, to.buffer, zero, 4, 0, 4,
						      NO_SYNC);
	case FILL_IMAGE:
		break;
	}
	return WITH_PROPERTIES(fill_image_fn, fill_image)(list, NULL, NULL, to.image, zero, origin,
							  pixel, NO_SYNC);
}

static cl_int form_record_plain(enum recorder recorder, cl_command_buffer_khr list,
				struct pair from, struct pair to, cl_sync_point_khr *point)
{
	static const cl_uint zero[4];

	switch (recorder) {
	case COPY:
		return khr.copy(list, NULL, from.buffer, to.buffer, 0, 0, 4, NO_SYNC);
	case COPY_RECT:
		return khr.rect(list, NULL, from.buffer, to.buffer, origin, origin, bytes, 0, 0, 0,
				0, NO_SYNC);
	case COPY_TO_IMAGE:
		return khr.to_image(list, NULL, from.buffer, to.image, 0, origin, pixel, NO_SYNC);
	case COPY_IMAGE:
		return khr.image(list, NULL, from.image, to.image, origin, origin, pixel, NO_SYNC);
	case COPY_FROM_IMAGE:
		return khr.from_image(list, NULL, from.image, to.buffer, origin, pixel, 0, NO_SYNC);
	case FILL:
		return khr.fill(list, NULL, to.buffer, zero, 4, 0, 4, NO_SYNC);
	case FILL_IMAGE:
		break;
	}
	return khr.fill_image(list, NULL, to.image, zero, origin, pixel, NO_SYNC);
}

/* Records a copy or fill of @m's objects; @other is the other side of a copy. */
static cl_int form_record(const struct form *form, cl_command_buffer_khr list, struct pair m,
			  struct pair other, cl_sync_point_khr *point)
{
	const struct pair from = form->is_target ? other : m, to = form->is_target ? m : other;

	return stub_get(STUB_COMMAND_PROPERTIES)
		       ? form_record_with_properties(form->recorder, list, from, to, point)
		       : form_record_plain(form->recorder, list, from, to, point);
}

/* The form returns @wanted.  A refused form calls the context's callback, and has no sync point. */
static void form_expect(const struct form *form, cl_int wanted, struct pair m, struct pair other)
{
	cl_command_buffer_khr list = list_create();
	cl_sync_point_khr point = 0x5a5a;
	unsigned notices = fix.notices;

	EXPECT_EQ(form_record(form, list, m, other, &point), wanted);
	EXPECT_EQ(point == 0x5a5a, wanted != CL_SUCCESS);
	EXPECT_EQ(fix.notices - notices, wanted != CL_SUCCESS);
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
}

static struct pair pair_plain(void)
{
	const struct pair p = { cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL),
				fixture_create_image(CL_MEM_OBJECT_IMAGE2D, NULL, 4, 4, 0) };

	return p;
}

static void pair_release(struct pair p)
{
	EXPECT_EQ(cl.clReleaseMemObject(p.image), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(p.buffer), CL_SUCCESS);
}

/* A driver's version of the extension, and whether the device alone or the platform too reports it. */
static const struct reported {
	const char *name;
	long properties, named;
} reported[] = {
	{ "0_9_0", 0, 3 },
	{ "0_9_0_device", 0, 1 },
	{ "0_9_5", 1, 3 },
	{ "0_9_5_device", 1, 1 },
};

static void open_reported(const struct reported *r)
{
	fixture_reset();
	stub_set(STUB_COMMAND_PROPERTIES, r->properties);
	stub_set(STUB_COMMAND_NAMED, r->named);
}

static void form_expect_in(const char *version, const struct form *form, const struct reported *by,
			   cl_int wanted)
{
	struct pair imported, derived, plain[2];

	open_reported(by);
	setenv("CLIMPORT_VERSION", version, 1);
	fixture_open();
	khr_get_functions();
	plain[0] = pair_plain();
	plain[1] = pair_plain();
	imported.buffer = fixture_import_host(0, pages_map(2), SIZE);
	imported.image = fixture_create_image(CL_MEM_OBJECT_IMAGE2D, imported.buffer, 4, 4, 0);
	derived.buffer = fixture_create_sub_buffer(imported.buffer, 4096, 4096);
	derived.image =
		fixture_create_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, imported.buffer, 16, 0, 0);
	form_expect(form, wanted, imported, plain[0]);
	form_expect(form, wanted, derived, plain[0]);
	form_expect(form, CL_SUCCESS, plain[1], plain[0]);
	pair_release(derived);
	pair_release(imported);
	pair_release(plain[0]);
	pair_release(plain[1]);
	fixture_close();
}

TEST_EACH_PAIR(recording, struct form, forms, struct reported, reported,
	       "In version 1.0.0, recording a copy or fill of an import is forbidden.")
{
	form_expect_in("1.0.0", row, column, CL_INVALID_OPERATION);
}

TEST_EACH_PAIR(recording_in_1_1, struct form, forms, struct reported, reported,
	       "From version 1.1.0 on, copies and fills of an import can be recorded.")
{
	form_expect_in("1.1.0", row, column, CL_SUCCESS);
}

TEST(read_only, "From version 1.1.0 on, a fill of memory that is mapped read-only is not recorded.")
{
	static const cl_uint zero[4];
	cl_command_buffer_khr list;
	unsigned char *memory;
	cl_mem mem;

	fixture_reset();
	stub_set(STUB_COMMAND_NAMED, 3);
	setenv("CLIMPORT_VERSION", "1.1.0", 1);
	fixture_open();
	khr_get_functions();
	memory = pages_map(2);
	EXPECT_EQ(mprotect(memory, SIZE, PROT_READ), 0);
	mem = fixture_import_host(CL_MEM_READ_ONLY, memory, SIZE);
	list = list_create();
	EXPECT_EQ(khr.fill(list, NULL, mem, zero, 4, 0, 4, 0, NULL, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(fix.notices, 1);
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

static const struct keeper {
	const char *name;
	const cl_import_properties_arm *properties;
	cl_int recorded;
} keepers[] = {
	{ "default", fixture_dma_buf, CL_SUCCESS },
	{ "application", application_keeps, CL_SUCCESS },
	{ "runtime", runtime_keeps, CL_INVALID_OPERATION },
};

TEST_EACH(keeper, struct keeper, keepers,
	  "From version 1.1.0 on, a fill of a dma-buf, or of a part of it, can be recorded unless "
	  "the runtime "
	  "keeps the memory consistent.")
{
	static const cl_uint zero[4];
	cl_command_buffer_khr list;
	cl_mem mems[2];
	cl_int err;
	int fd;

	fixture_reset();
	stub_set(STUB_COMMAND_NAMED, 3);
	setenv("CLIMPORT_VERSION", "1.1.0", 1);
	fixture_open();
	khr_get_functions();
	fd = fake_dmabuf_create("a", SIZE);
	mems[0] = fix.import(fix.context, 0, row->properties, &fd, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	mems[1] = fixture_create_sub_buffer(mems[0], SIZE / 2, SIZE / 2);
	list = list_create();
	for (int i = 1; i >= 0; i--) {
		EXPECT_EQ(khr.fill(list, NULL, mems[i], zero, 4, 0, 4, 0, NULL, NULL, NULL),
			  row->recorded);
		cl.clReleaseMemObject(mems[i]);
	}
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	close(fd);
	fixture_close();
}

TEST(wrong_lists, "An object that is not a command buffer gets CL_INVALID_COMMAND_BUFFER_KHR.")
{
	struct pair imported = { NULL, NULL }, plain;
	cl_sync_point_khr point = 0x5a5a;

	fixture_reset();
	fixture_open();
	khr_get_functions();
	plain = pair_plain();
	imported.buffer = fixture_import_host(0, pages_map(2), SIZE);
	EXPECT_EQ(form_record(&forms[0], NULL, plain, plain, &point),
		  CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(form_record(&forms[0], NULL, imported, plain, &point),
		  CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(khr.enqueue(0, NULL, NULL, 0, NULL, NULL), CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(khr.retain(NULL), CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(khr.release(NULL), CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT(!khr.create(0, NULL, NULL, NULL));
	EXPECT_EQ(point, 0x5a5a);
	cl.clReleaseMemObject(imported.buffer);
	pair_release(plain);
	fixture_close();
}

TEST_EACH(no_imports, struct reported, reported,
	  "A program without imports can record and run copies and fills.")
{
	cl_command_buffer_khr list;
	struct pair from, to;
	cl_sync_point_khr point;
	cl_uint value = 0x12345678;

	open_reported(row);
	fixture_open();
	khr_get_functions();
	from = pair_plain();
	to = pair_plain();
	EXPECT_EQ(cl.clEnqueueWriteBuffer(fix.queue, from.buffer, CL_TRUE, 0, 4, &value, 0, NULL,
					  NULL),
		  CL_SUCCESS);
	list = list_create();
	EXPECT_EQ(form_record(&forms[0], list, from, to, &point), CL_SUCCESS);
	EXPECT_EQ(form_record(&forms[10], list, from, to, &point), CL_SUCCESS);
	EXPECT_EQ(khr.finalize(list), CL_SUCCESS);
	EXPECT_EQ(khr.enqueue(0, NULL, list, 0, NULL, NULL), CL_SUCCESS);
	value = 0;
	EXPECT_EQ(
		cl.clEnqueueReadBuffer(fix.queue, to.buffer, CL_TRUE, 0, 4, &value, 0, NULL, NULL),
		CL_SUCCESS);
	EXPECT_EQ(value, 0x12345678);
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, from.buffer, CL_TRUE, 0, 4, &value, 0, NULL,
					 NULL),
		  CL_SUCCESS);
	EXPECT_EQ(value, 0);
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	pair_release(from);
	pair_release(to);
	fixture_close();
}

/* Arguments of clCreateCommandBufferKHR that name no queue. */
enum named_queues { NO_ARRAY, ARRAY_OF_QUEUE, ARRAY_OF_NULL, ARRAY_OF_CONTEXT };

static const struct wrong_queues {
	const char *name;
	cl_uint num;
	enum named_queues queues;
	cl_int wanted;
} wrong_queues[] = {
	{ "none", 0, NO_ARRAY, CL_INVALID_VALUE },
	{ "no_array", 1, NO_ARRAY, CL_INVALID_VALUE },
	{ "no_count", 0, ARRAY_OF_QUEUE, CL_INVALID_VALUE },
	{ "null", 1, ARRAY_OF_NULL, CL_INVALID_COMMAND_QUEUE },
	{ "context", 1, ARRAY_OF_CONTEXT, CL_INVALID_COMMAND_QUEUE },
};

TEST_EACH(wrong_queues, struct wrong_queues, wrong_queues,
	  "Creating a command buffer with wrong queues returns the extension's error.")
{
	cl_command_queue queues[4] = { NULL };
	const cl_command_queue *array = row->queues == NO_ARRAY ? NULL : &queues[row->queues];
	cl_int err = 1;

	fixture_reset();
	fixture_open();
	khr_get_functions();
	queues[ARRAY_OF_QUEUE] = fix.queue;
	queues[ARRAY_OF_CONTEXT] = (cl_command_queue)fix.context;
	EXPECT(!khr.create(row->num, array, NULL, &err));
	EXPECT_EQ(err, row->wanted);
	EXPECT(!khr.create(row->num, array, NULL, NULL));
	fixture_close();
}
