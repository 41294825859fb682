/* SPDX-License-Identifier: Apache-2.0 */
/* Destructor callbacks of imports, and of the objects on imports. */
#include "kernels.h"
#include "object.h"
#include "process.h"

struct callback {
	cl_mem mem;	     /* that the callback got */
	unsigned int number; /* of the call: 1 for the first */
};

static struct callback callbacks[2];
static atomic_uint calls;

static void CL_CALLBACK callback_note(cl_mem mem, void *data)
{
	struct callback *callback = data;

	if (callback) {
		callback->mem = mem;
		callback->number = atomic_load(&calls) + 1;
	}
	atomic_fetch_add(&calls, 1);
}

static bool callbacks_have_come(void *count)
{
	return atomic_load(&calls) >= *(unsigned int *)count;
}

/* Drivers may call a little later, on a thread of the driver. */
static void callbacks_expect(unsigned int count)
{
	process_settles(callbacks_have_come, &count);
	EXPECT_EQ(atomic_load(&calls), count);
}

static void callbacks_reset(void)
{
	memset(callbacks, 0, sizeof(callbacks));
	atomic_store(&calls, 0);
}

static cl_mem callback_import(void)
{
	size_t size = (2 + object_origin() / spec.page) * spec.page;
	cl_int error = 1;
	cl_mem mem;

	need_host();
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, spec_map_pages(size / spec.page),
			  size, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	return mem;
}

/* OpenCL: the callbacks come in the reverse order of their registration, with object and data. */
TEST(two_destructor_callbacks, R6_55)
{
	cl_mem mem = callback_import();

	callbacks_reset();
	EXPECT_EQ(clSetMemObjectDestructorCallback(mem, callback_note, &callbacks[0]), CL_SUCCESS);
	EXPECT_EQ(clSetMemObjectDestructorCallback(mem, callback_note, &callbacks[1]), CL_SUCCESS);
	EXPECT_EQ(atomic_load(&calls), 0);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	callbacks_expect(2);
	EXPECT(callbacks[0].mem == mem && callbacks[1].mem == mem);
	EXPECT_EQ(callbacks[1].number, 1);
	EXPECT_EQ(callbacks[0].number, 2);
}

TEST(destructor_callback_null, R6_55)
{
	cl_mem mem = released_later(callback_import());

	EXPECT_EQ(clSetMemObjectDestructorCallback(mem, NULL, NULL), CL_INVALID_VALUE);
}

static const struct callback_shape {
	const char *name;
	enum shape shape;
} callback_shapes[] = {
	{ "a_sub_buffer", SUB_BUFFER },
	{ "an_image", IMAGE },
	{ "an_image_of_a_sub_buffer", IMAGE_OF_SUB_BUFFER },
};

/*
 * The callback of the object comes before the callback of the import.  The test leaves 1D images out:
 * PoCL 3.1 calls no callback of 1D images.
 */
TEST_EACH(destructor_callback_of, struct callback_shape, callback_shapes, R6_55)
{
	cl_int error = 1;
	cl_mem import, mem;

	need_shape(row->shape);
	import = callback_import();
	callbacks_reset();
	mem = object_derive(import, row->shape, CL_MEM_READ_WRITE, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clSetMemObjectDestructorCallback(import, callback_note, &callbacks[0]),
		  CL_SUCCESS);
	EXPECT_EQ(clSetMemObjectDestructorCallback(mem, callback_note, &callbacks[1]), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(import), CL_SUCCESS);
	EXPECT_EQ(atomic_load(&calls), 0);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	callbacks_expect(2);
	EXPECT(callbacks[0].mem == import && callbacks[1].mem == mem);
	EXPECT_EQ(callbacks[1].number, 1);
}
