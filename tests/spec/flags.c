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

	EXPECT(flags_of(mem) & row->flags);
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

/* Hints: the host still reads and writes the memory. */
static void expect_hint(cl_mem_flags flag)
{
	unsigned char *memory;
	cl_mem mem;

	if (spec.device_version < CL_MAKE_VERSION(1, 2, 0))
		test_skip("device is older than OpenCL 1.2");
	mem = import_page(CL_MEM_READ_WRITE | flag, &memory);
	expect_shared(mem, memory, spec.page);
}

TEST(host_write_only, "R6-13 Valid <flags> are: CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY, "
		      "CL_MEM_HOST_NO_ACCESS - where the host flags are only hints and only apply "
		      "from OpenCL 1.2 onwards.")
{
	expect_hint(CL_MEM_HOST_WRITE_ONLY);
}

TEST(host_read_only, "R6-13 Valid <flags> are: CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY, "
		     "CL_MEM_HOST_NO_ACCESS - where the host flags are only hints and only apply "
		     "from OpenCL 1.2 onwards.")
{
	expect_hint(CL_MEM_HOST_READ_ONLY);
}

TEST(host_no_access, "R6-13 Valid <flags> are: CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY, "
		     "CL_MEM_HOST_NO_ACCESS - where the host flags are only hints and only apply "
		     "from OpenCL 1.2 onwards.")
{
	expect_hint(CL_MEM_HOST_NO_ACCESS);
}

TEST(host_flag_alone, "R6-04 Requires OpenCL 1.2 for host access cl_mem_flags use when importing, "
		      "as these were introduced in OpenCL 1.2.")
{
	unsigned char *memory;
	cl_mem mem;

	if (spec.device_version < CL_MAKE_VERSION(1, 2, 0))
		test_skip("device is older than OpenCL 1.2");
	mem = import_page(CL_MEM_HOST_READ_ONLY, &memory);
	expect_shared(mem, memory, spec.page);
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
