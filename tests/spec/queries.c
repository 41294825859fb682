/* SPDX-License-Identifier: Apache-2.0 */
/* What queries answer of imports, and of the objects that are made from imports. */
#include "object.h"
#include "process.h"

static const struct query_shape {
	const char *name;
	enum shape shape;
} query_shapes[] = {
	{ "sub_buffer", SUB_BUFFER },
	{ "image", IMAGE },
	{ "image_of_a_sub_buffer", IMAGE_OF_SUB_BUFFER },
	{ "image_1d", IMAGE_1D },
};

static cl_mem_flags query_flags(cl_mem mem)
{
	cl_mem_flags flags = 0;

	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof(flags), &flags, NULL), CL_SUCCESS);
	return flags;
}

static cl_uint query_references(cl_mem mem)
{
	cl_uint count = 0;

	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_REFERENCE_COUNT, sizeof(count), &count, NULL),
		  CL_SUCCESS);
	return count;
}

/* An import of two pages with more than an object's bytes behind object_origin(). */
static cl_mem query_import(cl_mem_flags flags)
{
	size_t pages = 2 + object_origin() / spec.page;

	return spec_import_host(flags, spec_map_pages(pages), pages * spec.page);
}

static cl_mem query_derive(cl_mem import, enum shape shape, cl_mem_flags flags)
{
	cl_int error = 1;
	cl_mem mem = released_later(object_derive(import, shape, flags, &error));

	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT(mem != NULL);
	return mem;
}

TEST(queries, R6_55)
{
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(2), spec.page + 5);

	QUERY(clGetMemObjectInfo, mem, CL_MEM_TYPE, cl_mem_object_type, CL_MEM_OBJECT_BUFFER);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_SIZE, size_t, spec.page + 5);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_CONTEXT, cl_context, spec.context);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_REFERENCE_COUNT, cl_uint, 1);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_MAP_COUNT, cl_uint, 0);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_OFFSET, size_t, 0);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, NULL);
}

/*
 * OpenCL: CL_MEM_HOST_PTR is NULL unless an object was created with CL_MEM_USE_HOST_PTR, which has
 * no effect on imports.
 */
static void query_expect_no_pointer(cl_mem mem)
{
	QUERY(clGetMemObjectInfo, mem, CL_MEM_HOST_PTR, void *, NULL);
	if (spec.device_version >= CL_MAKE_VERSION(2, 0, 0))
		QUERY(clGetMemObjectInfo, mem, CL_MEM_USES_SVM_POINTER, cl_bool, CL_FALSE);
}

static const struct query_flags_row {
	const char *name;
	cl_mem_flags flags;
} pointer_flags[] = {
	{ "no_flags", 0 },
	{ "read_write", CL_MEM_READ_WRITE },
	{ "read_only", CL_MEM_READ_ONLY },
	{ "use_host_ptr", CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR },
};

TEST_EACH(no_host_pointer_with, struct query_flags_row, pointer_flags,
	  "R6-14 Valid <flags> are: CL_MEM_USE_HOST_PTR - this flag has no effect, it is ignored.")
{
	query_expect_no_pointer(query_import(row->flags));
}

TEST_EACH(no_host_pointer_of, struct query_shape, query_shapes,
	  "R6-14 Valid <flags> are: CL_MEM_USE_HOST_PTR - this flag has no effect, it is ignored.")
{
	need_shape(row->shape);
	query_expect_no_pointer(query_derive(query_import(CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR),
					     row->shape, CL_MEM_READ_WRITE));
}

/* No query tells how the import was made. */
TEST(import_has_no_properties, R6_55)
{
	cl_mem mem = query_import(CL_MEM_READ_WRITE);
	size_t size = 1;

	if (spec.device_version < CL_MAKE_VERSION(3, 0, 0))
		test_skip("device is older than OpenCL 3.0");
	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_PROPERTIES, 0, NULL, &size), CL_SUCCESS);
	EXPECT_EXACT(size, 0);
}

static const cl_mem_info query_names[] = {
	CL_MEM_TYPE,	CL_MEM_FLAGS,		CL_MEM_SIZE,   CL_MEM_HOST_PTR,
	CL_MEM_CONTEXT, CL_MEM_REFERENCE_COUNT, CL_MEM_OFFSET, CL_MEM_ASSOCIATED_MEMOBJECT,
};

static void query_expect_size(cl_mem mem, cl_mem_info name)
{
	unsigned char value[64];
	size_t size = 0, again = 0;

	EXPECT_EQ(clGetMemObjectInfo(mem, name, 0, NULL, &size), CL_SUCCESS);
	EXPECT(size && size < sizeof(value));
	EXPECT_EQ(clGetMemObjectInfo(mem, name, size - 1, value, NULL), CL_INVALID_VALUE);
	memset(value, 0xee, sizeof(value));
	EXPECT_EQ(clGetMemObjectInfo(mem, name, sizeof(value), value, &again), CL_SUCCESS);
	EXPECT_EQ(again, size);
	EXPECT_EQ(value[size], 0xee);
}

TEST(sizes_of_answers, R6_55)
{
	cl_mem mem = query_import(CL_MEM_READ_WRITE);

	for (size_t i = 0; i < sizeof(query_names) / sizeof(query_names[0]); i++)
		query_expect_size(mem, query_names[i]);
	EXPECT_EQ(clGetMemObjectInfo(mem, CL_IMAGE_WIDTH, 0, NULL, NULL), CL_INVALID_VALUE);
}

TEST(references, R6_55)
{
	cl_mem mem = query_import(CL_MEM_READ_WRITE);

	EXPECT_EQ(clRetainMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(query_references(mem), 2);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(query_references(mem), 1);
}

struct query_count {
	cl_mem mem;
	cl_uint want;
};

static bool query_has_references(void *arg)
{
	const struct query_count *count = arg;

	return query_references(count->mem) == count->want;
}

/* Drivers may destroy an object some time after its release. */
static void query_expect_references(cl_mem mem, cl_uint want)
{
	struct query_count count = { mem, want };

	process_settles(query_has_references, &count);
	EXPECT_EQ(query_references(mem), want);
}

/* A child keeps the import; the import's count is as before once the child is gone. */
TEST_EACH(references_of, struct query_shape, query_shapes, R6_55)
{
	cl_uint before;
	cl_int error = 1;
	cl_mem import, mem;

	need_shape(row->shape);
	import = query_import(CL_MEM_READ_WRITE);
	before = query_references(import);
	mem = object_derive(import, row->shape, CL_MEM_READ_WRITE, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(query_references(mem), 1);
	EXPECT_EQ(clRetainMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(query_references(mem), 2);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(query_references(mem), 1);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	query_expect_references(import, before);
}

#define ACCESS (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
#define HOST_ACCESS (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)

static const struct inherited {
	cl_mem_flags import, object, want;
} inherited[] = {
	{ CL_MEM_READ_WRITE, 0, CL_MEM_READ_WRITE },
	{ CL_MEM_READ_ONLY, 0, CL_MEM_READ_ONLY },
	{ CL_MEM_WRITE_ONLY, 0, CL_MEM_WRITE_ONLY },
	{ CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, CL_MEM_READ_ONLY },
	{ CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_MEM_WRITE_ONLY },
	{ CL_MEM_READ_ONLY, CL_MEM_READ_ONLY, CL_MEM_READ_ONLY },
	{ CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY, 0, CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY },
	{ CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY, 0,
	  CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY },
	{ CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, 0, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS },
	{ CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_NO_ACCESS,
	  CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS },
	{ CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS, CL_MEM_READ_ONLY,
	  CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS },
};

static void query_expect_inherited(enum shape shape, const struct inherited *row)
{
	cl_mem mem = query_derive(query_import(row->import), shape, row->object);
	cl_mem_flags flags = query_flags(mem);

	if ((flags & (ACCESS | HOST_ACCESS)) != row->want)
		spec_note("flags %#llx of an object with flags %#llx on an import with %#llx",
			  (unsigned long long)flags, (unsigned long long)row->object,
			  (unsigned long long)row->import);
	EXPECT_EQ(flags & (ACCESS | HOST_ACCESS), row->want);
	EXPECT_EXACT(flags, row->want);
}

TEST_EACH(inherited_flags_of, struct query_shape, query_shapes, R6_55)
{
	need_shape(row->shape);
	for (size_t i = 0; i < sizeof(inherited) / sizeof(inherited[0]); i++)
		query_expect_inherited(row->shape, &inherited[i]);
}

static const struct excluded {
	cl_mem_flags import, object;
} excluded[] = {
	{ CL_MEM_READ_ONLY, CL_MEM_READ_WRITE },
	{ CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY },
	{ CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE },
	{ CL_MEM_WRITE_ONLY, CL_MEM_READ_ONLY },
	{ CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY },
	{ CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY },
	{ CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY },
	{ CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_WRITE_ONLY },
	{ CL_MEM_READ_WRITE, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY },
	{ CL_MEM_READ_WRITE, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR },
};

static void query_expect_excluded(enum shape shape, const struct excluded *row)
{
	cl_int error = 1;

	released_later(object_derive(query_import(row->import), shape, row->object, &error));
	if (error != CL_INVALID_VALUE)
		spec_note("flags %#llx of an object on an import with %#llx",
			  (unsigned long long)row->object, (unsigned long long)row->import);
	EXPECT_EQ(error, CL_INVALID_VALUE);
}

/* OpenCL: CL_INVALID_VALUE if the flags of an object allow what the flags of the buffer exclude. */
TEST_EACH(excluded_flags_of, struct query_shape, query_shapes, R6_55)
{
	need_shape(row->shape);
	for (size_t i = 0; i < sizeof(excluded) / sizeof(excluded[0]); i++)
		query_expect_excluded(row->shape, &excluded[i]);
}

static const struct query_flags_row host_flags[] = {
	{ "write_only", CL_MEM_HOST_WRITE_ONLY },
	{ "read_only", CL_MEM_HOST_READ_ONLY },
	{ "no_access", CL_MEM_HOST_NO_ACCESS },
};

TEST_EACH(host_flag_is_queried_as, struct query_flags_row, host_flags,
	  "R6-13 Valid <flags> are: CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY, "
	  "CL_MEM_HOST_NO_ACCESS - where the host flags are only hints and only apply "
	  "from OpenCL 1.2 onwards.")
{
	if (spec.device_version < CL_MAKE_VERSION(1, 2, 0))
		test_skip("device is older than OpenCL 1.2");
	EXPECT_EQ(query_flags(query_import(CL_MEM_READ_WRITE | row->flags)) & HOST_ACCESS,
		  row->flags);
}

TEST(image_buffer_is_the_parent, R6_55)
{
	static const enum shape shapes[] = { IMAGE, IMAGE_OF_SUB_BUFFER, IMAGE_1D };

	need_images();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct object o;

		if (!shape_works(shapes[i]))
			continue;
		object_make(&o, shapes[i], HOST_MEMORY, CL_MEM_READ_WRITE);
		QUERY(clGetImageInfo, o.mem, CL_IMAGE_BUFFER, cl_mem, o.parent);
		QUERY(clGetMemObjectInfo, o.mem, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, o.parent);
	}
}

/* The offset of an import in its page does not show. */
TEST_EACH(offset_inside_of_a_page_of, struct query_shape, query_shapes, R6_55)
{
	const struct object_form form = { .shape = row->shape,
					  .flags = CL_MEM_READ_WRITE,
					  .in_page = true };
	struct object o;

	object_make_form(&o, &form);
	QUERY(clGetMemObjectInfo, o.import, CL_MEM_OFFSET, size_t, 0);
	QUERY(clGetMemObjectInfo, o.import, CL_MEM_SIZE, size_t, o.size);
	QUERY(clGetMemObjectInfo, o.import, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, NULL);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, o.parent);
	if (row->shape == SUB_BUFFER)
		QUERY(clGetMemObjectInfo, o.mem, CL_MEM_OFFSET, size_t, o.origin - o.offset);
}

TEST(map_count, "R12-35 Version 1.1.0 of cl_arm_import_memory adds support for host "
		"access to imported memory for all memory types.")
{
	cl_int error = 1;
	cl_mem mem;
	void *mapped;

	need_1_1();
	mem = query_import(CL_MEM_READ_WRITE);
	mapped = clEnqueueMapBuffer(spec.queue, mem, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL,
				    &error);
	EXPECT_EQ(error, CL_SUCCESS);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_MAP_COUNT, cl_uint, 1);
	EXPECT_EQ(clEnqueueUnmapMemObject(spec.queue, mem, mapped, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_MAP_COUNT, cl_uint, 0);
}

/* What OpenCL's queries answer of the object, and of its place among the other objects. */
static void query_expect_place(const struct object *o)
{
	QUERY(clGetMemObjectInfo, o->mem, CL_MEM_CONTEXT, cl_context, spec.context);
	QUERY(clGetMemObjectInfo, o->mem, CL_MEM_MAP_COUNT, cl_uint, 0);
	QUERY(clGetMemObjectInfo, o->mem, CL_MEM_REFERENCE_COUNT, cl_uint, 1);
	QUERY(clGetMemObjectInfo, o->mem, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, o->parent);
}

TEST_EACH(queries_of, struct query_shape, query_shapes, R6_55)
{
	struct object o;

	object_make(&o, row->shape, HOST_MEMORY, CL_MEM_READ_WRITE);
	query_expect_place(&o);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_OFFSET, size_t,
	      row->shape == SUB_BUFFER ? o.origin : 0);
	if (row->shape != SUB_BUFFER)
		return;
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_TYPE, cl_mem_object_type, CL_MEM_OBJECT_BUFFER);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_SIZE, size_t, o.size - o.origin);
}

static const struct query_shape query_images[] = {
	{ "2d", IMAGE },
	{ "2d_of_a_sub_buffer", IMAGE_OF_SUB_BUFFER },
	{ "1d", IMAGE_1D },
};

TEST_EACH(image_queries_of, struct query_shape, query_images, R6_55)
{
	bool is_1d = row->shape == IMAGE_1D;
	cl_image_format format = { 0, 0 };
	struct object o;

	object_make(&o, row->shape, HOST_MEMORY, CL_MEM_READ_WRITE);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_TYPE, cl_mem_object_type,
	      is_1d ? CL_MEM_OBJECT_IMAGE1D_BUFFER : CL_MEM_OBJECT_IMAGE2D);
	QUERY(clGetImageInfo, o.mem, CL_IMAGE_WIDTH, size_t, o.region[0]);
	QUERY(clGetImageInfo, o.mem, CL_IMAGE_HEIGHT, size_t, is_1d ? 0 : o.region[1]);
	QUERY(clGetImageInfo, o.mem, CL_IMAGE_DEPTH, size_t, 0);
	QUERY(clGetImageInfo, o.mem, CL_IMAGE_ELEMENT_SIZE, size_t, PIXEL);
	if (!is_1d)
		QUERY(clGetImageInfo, o.mem, CL_IMAGE_ROW_PITCH, size_t, o.pitch);
	EXPECT_EQ(clGetImageInfo(o.mem, CL_IMAGE_FORMAT, sizeof(format), &format, NULL),
		  CL_SUCCESS);
	EXPECT(format.image_channel_order == rgba.image_channel_order &&
	       format.image_channel_data_type == rgba.image_channel_data_type);
}

static cl_uint query_count_formats(void)
{
	cl_uint count = 0;

	EXPECT_EQ(clGetSupportedImageFormats(spec.context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D,
					     0, NULL, &count),
		  CL_SUCCESS);
	return count;
}

TEST(image_formats_beside_an_import, R6_55)
{
	cl_uint before;

	need_images();
	before = query_count_formats();
	query_import(CL_MEM_READ_WRITE);
	EXPECT_EQ(query_count_formats(), before);
}
