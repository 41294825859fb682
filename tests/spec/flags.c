/* SPDX-License-Identifier: Apache-2.0 */
/* The flags argument: valid flags work as documented, and every other flag is refused. */
#include "kernels.h"

static cl_mem import_page(cl_mem_flags flags, unsigned char **memory)
{
	*memory = spec_map_pages(1);
	return spec_import_host(flags, *memory, spec.page);
}

TEST(no_flags_is_read_write,
     "R6-11 The flags argument provides standard OpenCL memory object flags.")
{
	unsigned char *memory;
	cl_mem mem = import_page(0, &memory);

	expect_shared(mem, memory, spec.page);
}

static cl_mem_flags flags_of(cl_mem mem)
{
	cl_mem_flags flags = 0;

	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof(flags), &flags, NULL), CL_SUCCESS);
	return flags;
}

struct flags_row {
	const char *name;
	cl_mem_flags flags;
};

static const struct flags_row queried_flags[] = {
	{ "read_write", CL_MEM_READ_WRITE },
	{ "write_only", CL_MEM_WRITE_ONLY },
	{ "read_only", CL_MEM_READ_ONLY },
};

TEST_EACH(flags_can_be_queried, struct flags_row, queried_flags,
	  "R6-11 The flags argument provides standard OpenCL memory object flags.")
{
	unsigned char *memory;
	cl_mem mem = import_page(row->flags, &memory);

	EXPECT_EQ(flags_of(mem) & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY),
		  row->flags);
	EXPECT_EXACT(flags_of(mem), row->flags);
}

TEST(no_flags_are_queried_as_read_write,
     "R6-11 The flags argument provides standard OpenCL memory object flags.")
{
	unsigned char *memory;
	cl_mem mem = import_page(0, &memory);

	EXPECT_EQ(flags_of(mem) & (CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY), 0);
	EXPECT_EXACT(flags_of(mem), CL_MEM_READ_WRITE);
}

TEST(read_write, "R6-12 Valid <flags> are: CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_MEM_READ_ONLY")
{
	unsigned char *memory;
	cl_mem mem = import_page(CL_MEM_READ_WRITE, &memory);

	expect_shared(mem, memory, spec.page);
}

TEST(write_only, "R6-12 Valid <flags> are: CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_MEM_READ_ONLY")
{
	unsigned char *memory;
	cl_mem mem = import_page(CL_MEM_WRITE_ONLY, &memory);

	expect_written_by_device(mem, memory, spec.page);
}

TEST(read_only, "R6-12 Valid <flags> are: CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_MEM_READ_ONLY")
{
	unsigned char *memory;
	cl_mem mem = import_page(CL_MEM_READ_ONLY, &memory);

	expect_read_by_device(mem, memory, spec.page);
}

#define R6_13                                                                                     \
	"R6-13 Valid <flags> are: CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY, "                \
	"CL_MEM_HOST_NO_ACCESS - where the host flags are only hints and only apply from OpenCL " \
	"1.2 onwards."

static void need_host_flags(void)
{
	if (spec.device_version < CL_MAKE_VERSION(1, 2, 0))
		test_skip("device is older than OpenCL 1.2");
}

/* The host reads and writes the memory, whatever the host flags are: hints. */
static void expect_access(cl_mem mem, cl_mem_flags access, unsigned char *memory)
{
	if (access & CL_MEM_READ_ONLY)
		expect_read_by_device(mem, memory, spec.page);
	else if (access & CL_MEM_WRITE_ONLY)
		expect_written_by_device(mem, memory, spec.page);
	else
		expect_shared(mem, memory, spec.page);
}

static const struct flags_row accesses[] = {
	{ "alone", 0 },
	{ "with_read_write", CL_MEM_READ_WRITE },
	{ "with_write_only", CL_MEM_WRITE_ONLY },
	{ "with_read_only", CL_MEM_READ_ONLY },
	{ "with_use_host_ptr", CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR },
};

static const struct flags_row hints[] = {
	{ "write_only", CL_MEM_HOST_WRITE_ONLY },
	{ "read_only", CL_MEM_HOST_READ_ONLY },
	{ "no_access", CL_MEM_HOST_NO_ACCESS },
};

TEST_EACH_PAIR(host, struct flags_row, hints, struct flags_row, accesses, R6_13)
{
	unsigned char *memory;
	cl_mem mem;

	need_host_flags();
	mem = import_page(row->flags | column->flags, &memory);
	expect_access(mem, column->flags, memory);
	EXPECT_EQ(flags_of(mem) & row->flags, row->flags);
	EXPECT_EQ(flags_of(mem) & CL_MEM_USE_HOST_PTR, 0);
}

enum { BYTES_OF_A_CALL = 64 };

/* A call works, since the flags are hints, or is refused like the call on a plain buffer. */
static void expect_as_hint(cl_int error, cl_int plain)
{
	EXPECT(error == CL_SUCCESS || error == plain);
}

/* From 1.1.0 on, the calls by which the host reads and writes heed the flags as of any buffer. */
TEST_EACH(host_calls_of_an_import_with_host, struct flags_row, hints, R6_13)
{
	unsigned char *memory, bytes[BYTES_OF_A_CALL];
	cl_int read, write;
	cl_mem mem, plain;

	need_1_1();
	need_host_flags();
	mem = import_page(CL_MEM_READ_WRITE | row->flags, &memory);
	plain = released_later(clCreateBuffer(spec.context, CL_MEM_READ_WRITE | row->flags,
					      spec.page, NULL, &read));
	EXPECT_EQ(read, CL_SUCCESS);
	memset(bytes, 0, sizeof(bytes));
	read = clEnqueueReadBuffer(spec.queue, plain, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL,
				   NULL);
	write = clEnqueueWriteBuffer(spec.queue, plain, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL,
				     NULL);
	expect_as_hint(clEnqueueReadBuffer(spec.queue, mem, CL_TRUE, 0, sizeof(bytes), bytes, 0,
					   NULL, NULL),
		       read);
	expect_as_hint(clEnqueueWriteBuffer(spec.queue, mem, CL_TRUE, 0, sizeof(bytes), bytes, 0,
					    NULL, NULL),
		       write);
}

#define R6_04                                                                            \
	"R6-04 Requires OpenCL 1.2 for host access cl_mem_flags use when importing, as " \
	"these were introduced in OpenCL 1.2."

TEST_EACH(host_flag_since_opencl_1_2, struct flags_row, hints, R6_04)
{
	unsigned char *memory;
	cl_mem mem;

	need_host_flags();
	mem = import_page(row->flags, &memory);
	expect_shared(mem, memory, spec.page);
}

TEST_EACH(host_flag_before_opencl_1_2, struct flags_row, hints, R6_04)
{
	if (spec.device_version >= CL_MAKE_VERSION(1, 2, 0))
		test_skip("device has OpenCL 1.2");
	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_WRITE | row->flags, spec_map_pages(1),
					 spec.page),
		  CL_INVALID_VALUE);
}

TEST(use_host_ptr,
     "R6-14 Valid <flags> are: CL_MEM_USE_HOST_PTR - this flag has no effect, it is ignored.")
{
	unsigned char *memory;
	cl_mem mem = import_page(CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, &memory);

	expect_shared(mem, memory, spec.page);
}

TEST(use_host_ptr_alone,
     "R6-14 Valid <flags> are: CL_MEM_USE_HOST_PTR - this flag has no effect, it is ignored.")
{
	unsigned char *memory;
	cl_mem mem = import_page(CL_MEM_USE_HOST_PTR, &memory);

	expect_shared(mem, memory, spec.page);
}

TEST(use_host_ptr_does_not_show,
     "R6-14 Valid <flags> are: CL_MEM_USE_HOST_PTR - this flag has no effect, it is ignored.")
{
	unsigned char *memory;
	cl_mem mem = import_page(CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, &memory);

	EXPECT(flags_of(mem) & CL_MEM_READ_ONLY);
	EXPECT_EXACT(flags_of(mem), CL_MEM_READ_ONLY);
}

static const struct flags_row invalid_flags[] = {
	{ "read_write_and_write_only", CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY },
	{ "read_write_and_read_only", CL_MEM_READ_WRITE | CL_MEM_READ_ONLY },
	{ "write_only_and_read_only", CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY },
	{ "all_three_accesses", CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY },
	{ "host_write_only_and_read_only", CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY },
	{ "host_write_only_and_no_access", CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS },
	{ "host_read_only_and_no_access", CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS },
	{ "alloc_host_ptr", CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR },
	{ "copy_host_ptr", CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR },
	{ "use_and_copy_host_ptr", CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR },
	{ "use_and_alloc_host_ptr", CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR },
	{ "svm_fine_grain_buffer", CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER },
	{ "svm_atomics", CL_MEM_READ_WRITE | CL_MEM_SVM_ATOMICS },
	{ "kernel_read_and_write", CL_MEM_READ_WRITE | CL_MEM_KERNEL_READ_AND_WRITE },
	{ "flag_of_nobody", CL_MEM_READ_WRITE | (cl_mem_flags)1 << 40 },
	{ "highest_flag", CL_MEM_READ_WRITE | (cl_mem_flags)1 << 63 },
	{ "all_flags", ~(cl_mem_flags)0 },
};

TEST_EACH_AS(invalid_flags, "", struct flags_row, invalid_flags,
	     "R6-23 CL_INVALID_VALUE on invalid flag input.")
{
	EXPECT_EQ(spec_import_host_error(row->flags, spec_map_pages(1), spec.page),
		  CL_INVALID_VALUE);
}
