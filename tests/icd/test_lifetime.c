/* SPDX-License-Identifier: Apache-2.0 */
/* The lifetime of imports, and of their memory's mapping. */
#include "access.h"

#include <sys/mman.h>
#include <unistd.h>

TEST(retain_release, "An import stays an import until its last reference is released.")
{
	cl_mem mem;
	int fd;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	mem = fixture_import_dmabuf(fd, SIZE);
	EXPECT_EQ(cl.clRetainMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(cl.clRetainMemObject(mem), CL_SUCCESS);
	for (int i = 0; i < 3; i++) {
		EXPECT(fixture_is_import(mem));
		EXPECT_EQ(process_count_mappings("fake-dmabuf"), 1);
		EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	}
	/* The stub's queue drops the import a moment after clFinish(). */
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	close(fd);
	fixture_close();
}

TEST(retain_refused,
     "A reference that the driver refuses does not count: the release ends the import.")
{
	unsigned char *p;
	cl_mem mem;

	fixture_reset();
	fixture_open();
	p = pages_map(1);
	mem = fixture_import_host(CL_MEM_READ_ONLY, p + 1, 100);
	stub_fail("clRetainMemObject", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clRetainMemObject(mem), CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	/* Imports of a page that live at the same time have the same access. */
	mem = fixture_import_host(CL_MEM_READ_WRITE, p + 1, 100);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(sub_buffer_outlives_parent,
     "A sub-buffer is still an import after its parent's release, and holds the parent.")
{
	cl_mem mem, sub;
	int fd;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	mem = fixture_import_dmabuf(fd, SIZE);
	sub = fixture_create_sub_buffer(mem, 4096, 256);
	cl.clReleaseMemObject(mem);
	EXPECT(fixture_is_import(sub));
	EXPECT_EQ(process_count_mappings("fake-dmabuf"), 1);
	fixture_increment(sub);
	cl.clReleaseMemObject(sub);
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	close(fd);
	fixture_close();
}

TEST(image_outlives_parents,
     "An image on a sub-buffer keeps the released sub-buffer and the released import alive.")
{
	unsigned char *memory;
	cl_mem mem, sub, made, out;
	cl_kernel kernel;
	cl_uint side[2] = { 4, 4 };
	cl_int err;

	fixture_reset();
	fixture_open();
	memory = pages_map(2);
	mem = fixture_import_host(0, memory, SIZE);
	sub = fixture_create_sub_buffer(mem, 4096, 4096);
	made = fixture_create_image(CL_MEM_OBJECT_IMAGE2D, sub, 4, 4, 64);
	cl.clReleaseMemObject(sub);
	cl.clReleaseMemObject(mem);
	EXPECT(stub_is_live(sub, STUB_MEM));
	EXPECT(stub_is_live(mem, STUB_MEM));
	out = cl.clCreateBuffer(fix.context, 0, 64, NULL, &err);
	kernel = fixture_create_kernel("image_to_buffer");
	cl.clSetKernelArg(kernel, 0, sizeof(made), &made);
	cl.clSetKernelArg(kernel, 1, sizeof(out), &out);
	cl.clSetKernelArg(kernel, 2, sizeof(side[0]), &side[0]);
	cl.clSetKernelArg(kernel, 3, sizeof(side[1]), &side[1]);
	for (unsigned char turn = 1; turn < 4; turn++) {
		unsigned char pixel[4];

		memory[4096 + 64 * 2 + 4] = turn; /* the pixel at (1, 2) */
		EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, out, CL_TRUE, (2 * 4 + 1) * 4, 4, pixel,
						 0, NULL, NULL),
			  CL_SUCCESS);
		EXPECT_EQ(pixel[0], turn);
	}
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(out);
	EXPECT_EQ(cl.clReleaseMemObject(made), CL_SUCCESS);
	EXPECT(!stub_is_live(mem, STUB_MEM));
	fixture_close();
}

/* Creates an object of class @way, which may get the address of a freed import. */
static cl_mem heir_create_buffer(void)
{
	return cl.clCreateBuffer(fix.context, 0, 64, NULL, NULL);
}

static cl_mem heir_create_buffer_with_properties(void)
{
	return cl.clCreateBufferWithProperties(fix.context, NULL, 0, 64, NULL, NULL);
}

static const cl_image_format rgba = { CL_RGBA, CL_UNSIGNED_INT8 };
static const cl_image_desc small_image = {
	.image_type = CL_MEM_OBJECT_IMAGE2D,
	.image_width = 4,
	.image_height = 4,
};

static cl_mem heir_create_image(void)
{
	return cl.clCreateImage(fix.context, 0, &rgba, &small_image, NULL, NULL);
}

static cl_mem heir_create_image_with_properties(void)
{
	return cl.clCreateImageWithProperties(fix.context, NULL, 0, &rgba, &small_image, NULL,
					      NULL);
}

static cl_mem heir_create_image_2d(void)
{
	return cl.clCreateImage2D(fix.context, 0, &rgba, 4, 4, 0, NULL, NULL);
}

static cl_mem heir_create_image_3d(void)
{
	return cl.clCreateImage3D(fix.context, 0, &rgba, 4, 4, 4, 0, 0, NULL, NULL);
}

static cl_mem heir_create_gl_buffer(void)
{
	return cl.clCreateFromGLBuffer(fix.context, 0, 1, NULL);
}

static cl_mem heir_create_gl_texture(void)
{
	return cl.clCreateFromGLTexture(fix.context, 0, 1, 0, 1, NULL);
}

static cl_mem heir_create_gl_renderbuffer(void)
{
	return cl.clCreateFromGLRenderbuffer(fix.context, 0, 1, NULL);
}

static cl_mem heir_create_egl_image(void)
{
	return cl.clCreateFromEGLImageKHR(fix.context, NULL, NULL, 0, NULL, NULL);
}

static cl_mem heir_create_pipe(void)
{
	return cl.clCreatePipe(fix.context, 0, 4, 4, NULL, NULL);
}

/* Calls to create an object, which may get the address of a freed import. */
static const struct creation {
	const char *name;
	cl_mem (*create)(void);
} creations[] = {
	{ "buffer", heir_create_buffer },
	{ "buffer_with_properties", heir_create_buffer_with_properties },
	{ "image", heir_create_image },
	{ "image_with_properties", heir_create_image_with_properties },
	{ "image_2d", heir_create_image_2d },
	{ "image_3d", heir_create_image_3d },
	{ "gl_buffer", heir_create_gl_buffer },
	{ "gl_texture", heir_create_gl_texture },
	{ "gl_renderbuffer", heir_create_gl_renderbuffer },
	{ "egl_image", heir_create_egl_image },
	{ "pipe", heir_create_pipe },
};

/* Releases @mem, and creates an object at the address of @mem.  The object is not an import. */
static void creation_expect_no_import(const struct creation *creation, cl_mem mem)
{
	cl_mem heir;

	cl.clReleaseMemObject(mem);
	heir = creation->create();
	EXPECT(heir == mem); /* the test's premise */
	EXPECT(!fixture_is_import(heir));
	cl.clReleaseMemObject(heir);
}

/* Drivers with and without destructor callbacks for 1D images. */
static const struct callback_habit {
	const char *name;
	long no_image1d_destructor;
} callback_habits[] = { { "callbacks", 0 }, { "no_image1d_callbacks", 1 } };

TEST_EACH_PAIR(reused_address, struct creation, creations, struct callback_habit, callback_habits,
	       "An object at the address of a freed import, sub-buffer or image is not an import.")
{
	cl_mem keep, mem;

	fixture_reset();
	fixture_open();
	keep = fixture_import_host(0, pages_map(2), SIZE);
	mem = fixture_import_host(0, pages_map(2), SIZE);
	stub_set(STUB_ADDRESS_REUSE, 1);
	stub_set(STUB_NO_IMAGE1D_DESTRUCTOR, column->no_image1d_destructor);
	creation_expect_no_import(row, mem);
	creation_expect_no_import(row, fixture_create_sub_buffer(keep, 0, 256));
	creation_expect_no_import(
		row, fixture_create_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, keep, 16, 0, 0));
	stub_set(STUB_ADDRESS_REUSE, 0);
	cl.clReleaseMemObject(keep);
	fixture_close();
}

/* Opens the fixture and makes the first imports, whose self-tests create objects too. */
static void open_proved(void)
{
	fixture_open();
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), 4096));
	cl.clReleaseMemObject(fixture_import_host(CL_MEM_READ_ONLY, pages_map(1), 4096));
	stub_set(STUB_ADDRESS_REUSE, 1);
}

/* What an earlier test has left to other threads may be freed between the two imports. */
TEST(import_at_freed_address, "A new import at the address of a freed one is an import.")
{
	int reused = 0;
	cl_mem first, second;
	cl_mem_flags flags;

	fixture_reset();
	open_proved();
	for (int i = 0; i < 100; i++) {
		first = fixture_import_host(0, pages_map(1), 4096);
		cl.clReleaseMemObject(first);
		second = fixture_import_host(CL_MEM_READ_ONLY, pages_map(1), 4096);
		reused += second == first;
		EXPECT(fixture_is_import(second));
		EXPECT_EQ(cl.clGetMemObjectInfo(second, CL_MEM_FLAGS, sizeof(flags), &flags, NULL),
			  CL_SUCCESS);
		EXPECT_EQ(flags, CL_MEM_READ_ONLY);
		cl.clReleaseMemObject(second);
		if (i % 25 == 24) {
			fixture_close();
			fixture_reset();
			open_proved();
		}
	}
	EXPECT(reused > 0);
	fixture_close();
}

TEST(late_destructor,
     "If destructor callbacks come late on a thread, memory stays mapped until the callbacks come.")
{
	cl_mem mem;
	int fd;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	mem = fixture_import_dmabuf(fd, SIZE);
	stub_set(STUB_ASYNC_DESTRUCTOR, STUB_HELD);
	cl.clReleaseMemObject(mem);
	EXPECT(stub_is_live(mem, STUB_MEM));
	EXPECT_EQ(process_count_mappings("fake-dmabuf"), 1);
	stub_set(STUB_ASYNC_DESTRUCTOR, 1);
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	close(fd);
	fixture_close();
}

static void CL_CALLBACK count_call(cl_mem mem, void *count)
{
	(void)mem;
	++*(int *)count;
}

TEST(own_destructor_callback, "The application's destructor callback on an import is called once.")
{
	int calls = 0;
	cl_mem mem;

	fixture_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(1), 4096);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(mem, count_call, &calls), CL_SUCCESS);
	cl.clReleaseMemObject(mem);
	EXPECT_EQ(calls, 1);
	fixture_close();
}

/* A destructor callback: imports the memory of the destroyed import again, for other access. */
static void CL_CALLBACK import_again(cl_mem mem, void *memory)
{
	(void)mem;
	cl.clReleaseMemObject(fixture_import_host(CL_MEM_READ_ONLY, memory, 100));
	stub_trace("imported again");
}

/* Whether the import's sub-buffer is released last. */
static const struct last_object {
	const char *name;
	bool is_sub_buffer;
} last_objects[] = { { "import", false }, { "sub_buffer", true } };

TEST_EACH(reuse_in_destructor, struct last_object, last_objects,
	  "A destructor callback may import the memory again, whether the import or its sub-buffer "
	  "was released last.")
{
	unsigned char *memory;
	cl_mem mem, sub = NULL;

	fixture_reset();
	fixture_open();
	memory = pages_map(2) + 8;
	mem = fixture_import_host(0, memory, 4096);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(mem, import_again, memory + 256), CL_SUCCESS);
	if (row->is_sub_buffer)
		sub = fixture_create_sub_buffer(mem, 0, 256);
	cl.clReleaseMemObject(mem);
	if (row->is_sub_buffer)
		cl.clReleaseMemObject(sub);
	expect_count("imported again", 1);
	fixture_close();
}

/*
 * Releases the import and @made while a kernel with the argument @made waits; then the kernel runs.
 */
static void release_in_flight(struct buffer *a, cl_mem made, const char *name)
{
	const bool reads = strcmp(name, "increment") != 0;
	cl_event go = user_event_create(), done;
	cl_kernel kernel = fixture_create_kernel(name);
	const cl_uint side = 1;
	unsigned char byte = 0;
	cl_mem out;
	cl_int err;

	out = cl.clCreateBuffer(fix.context, 0, 64, NULL, &err);
	cl.clSetKernelArg(kernel, 0, sizeof(made), &made);
	if (reads) {
		cl.clSetKernelArg(kernel, 1, sizeof(out), &out);
		cl.clSetKernelArg(kernel, 2, sizeof(side), &side);
		cl.clSetKernelArg(kernel, 3, sizeof(side), &side);
	}
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 1, &go, &done), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(made);
	if (a->mem != made)
		cl.clReleaseMemObject(a->mem);
	EXPECT_EQ(process_count_mappings("fake-dmabuf"), 2);
	a->seen[0] = 41;
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	cl.clReleaseEvent(done);
	cl.clReleaseEvent(go);
	if (reads)
		EXPECT_EQ(
			cl.clEnqueueReadBuffer(fix.queue, out, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
			CL_SUCCESS);
	EXPECT_EQ(reads ? byte : a->seen[0], reads ? 41 : 42);
	cl.clReleaseMemObject(out);
}

/* The keeper of the data's consistency.  The runtime's brackets hold the memory too. */
static const struct keeper {
	const char *name;
	const cl_import_properties_arm *properties;
} keepers[] = { { "runtime", runtime_keeps }, { "application", application_keeps } };

static void keeper_expect_held(const struct keeper *keeper, bool of_image)
{
	struct buffer a;
	cl_mem made;

	fixture_reset();
	fixture_open();
	a = buffer_open("a", keeper->properties);
	made = of_image ? fixture_create_image(CL_MEM_OBJECT_IMAGE2D, a.mem, 4, 4, 64) : a.mem;
	release_in_flight(&a, made, of_image ? "image_to_buffer" : "increment");
	munmap(a.seen, SIZE);
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	close(a.fd);
	fixture_close();
}

TEST_EACH(released_in_flight, struct keeper, keepers,
	  "A released import stays mapped until the kernel that uses it has run.")
{
	keeper_expect_held(row, false);
}

TEST_EACH(image_released_in_flight, struct keeper, keepers,
	  "If an image on an import is released while a kernel uses the image, the import is held "
	  "until the kernel ends.")
{
	keeper_expect_held(row, true);
}

/* Enqueues a kernel to read the first pixels of @made once @go is complete. */
static void enqueue_reader(cl_mem made, cl_mem out, bool of_line, cl_event go)
{
	cl_kernel kernel = fixture_create_kernel(of_line ? "image1d_to_buffer" : "image_to_buffer");
	const cl_uint side = 1;

	EXPECT_EQ(cl.clSetKernelArg(kernel, 0, sizeof(made), &made), CL_SUCCESS);
	EXPECT_EQ(cl.clSetKernelArg(kernel, 1, sizeof(out), &out), CL_SUCCESS);
	EXPECT_EQ(cl.clSetKernelArg(kernel, 2, sizeof(side), &side), CL_SUCCESS);
	if (!of_line)
		EXPECT_EQ(cl.clSetKernelArg(kernel, 3, sizeof(side), &side), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 1, &go, NULL), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
}

static void CL_CALLBACK lifetime_trace_destroyed(cl_mem mem, void *name)
{
	(void)mem;
	stub_trace("destroyed %s", (char *)name);
}

/* Releases all objects while a kernel on an image is held back, and then lets the kernel run. */
static void expect_destroyed_after_kernel(bool of_line, bool of_part)
{
	static char name[] = "import";
	cl_mem mem, parent, made, out;
	cl_event go;

	fixture_open();
	mem = fixture_import_host(0, pages_map(2), SIZE);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(mem, lifetime_trace_destroyed, name),
		  CL_SUCCESS);
	parent = of_part ? fixture_create_sub_buffer(mem, 4096, 4096) : mem;
	made = of_line ? fixture_create_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, parent, 16, 0, 0)
		       : fixture_create_image(CL_MEM_OBJECT_IMAGE2D, parent, 4, 4, 64);
	out = cl.clCreateBuffer(fix.context, 0, 64, NULL, NULL);
	go = user_event_create();
	enqueue_reader(made, out, of_line, go);
	cl.clReleaseMemObject(made);
	if (of_part)
		cl.clReleaseMemObject(parent);
	cl.clReleaseMemObject(mem);
	expect_count("destroyed import", 0);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	cl.clReleaseEvent(go);
	cl.clReleaseMemObject(out);
	fixture_close();
	expect_order(of_line ? "kernel image1d_to_buffer end" : "kernel image_to_buffer end",
		     "destroyed import");
	expect_count("destroyed import", 1);
}

/* Drivers' habits in the destruction of objects. */
static const struct habit {
	const char *name;
	enum stub_option option;
} habits[] = {
	{ "address_reuse", STUB_ADDRESS_REUSE },
	{ "no_image1d_callbacks", STUB_NO_IMAGE1D_DESTRUCTOR },
	{ "late_callbacks", STUB_ASYNC_DESTRUCTOR },
	{ "image2d_from_buffer", STUB_IMAGE2D_FROM_BUFFER },
};

/* An image on an import, or on a sub-buffer of an import. */
static const struct image_kind {
	const char *name;
	bool is_1d, is_on_sub_buffer;
} image_kinds[] = {
	{ "2d", false, false },
	{ "1d", true, false },
	{ "2d_on_sub_buffer", false, true },
	{ "1d_on_sub_buffer", true, true },
};

TEST_EACH_PAIR(destructor_after_image, struct habit, habits, struct image_kind, image_kinds,
	       "An import's destructor callback comes after the last kernel that uses an image "
	       "on the import.")
{
	fixture_reset();
	stub_set(row->option, 1);
	expect_destroyed_after_kernel(column->is_1d, column->is_on_sub_buffer);
}
