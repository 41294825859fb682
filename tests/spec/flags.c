/* SPDX-License-Identifier: Apache-2.0 */
/* The flags argument: what is valid works as it says, everything else is refused. */
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

TEST(flags_can_be_queried, "R6-11 The flags argument provides standard OpenCL memory object flags.")
{
	static const cl_mem_flags given[] = { CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY,
					      CL_MEM_READ_ONLY };

	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		unsigned char *memory;
		cl_mem mem = import_page(given[i], &memory);

		EXPECT(flags_of(mem) & given[i]);
		EXPECT_EXACT(flags_of(mem), given[i]);
	}
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

/* Hints: the host still sees and changes its own memory. */
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

#define INVALID_FLAGS "R6-23 CL_INVALID_VALUE on invalid flag input."

#define REFUSED(name, flags)                                                           \
	TEST(name, INVALID_FLAGS)                                                      \
	{                                                                              \
		EXPECT_EQ(spec_import_host_error(flags, spec_map_pages(1), spec.page), \
			  CL_INVALID_VALUE);                                           \
	}

REFUSED(read_write_and_write_only, CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY)
REFUSED(read_write_and_read_only, CL_MEM_READ_WRITE | CL_MEM_READ_ONLY)
REFUSED(write_only_and_read_only, CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
REFUSED(all_three_accesses, CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
REFUSED(host_write_only_and_read_only, CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY)
REFUSED(host_write_only_and_no_access, CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)
REFUSED(host_read_only_and_no_access, CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)
REFUSED(alloc_host_ptr, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR)
REFUSED(copy_host_ptr, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR)
REFUSED(use_and_copy_host_ptr, CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)
REFUSED(use_and_alloc_host_ptr, CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR)
REFUSED(svm_fine_grain_buffer, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER)
REFUSED(svm_atomics, CL_MEM_READ_WRITE | CL_MEM_SVM_ATOMICS)
REFUSED(kernel_read_and_write, CL_MEM_READ_WRITE | CL_MEM_KERNEL_READ_AND_WRITE)
REFUSED(flag_of_nobody, CL_MEM_READ_WRITE | (cl_mem_flags)1 << 40)
REFUSED(highest_flag, CL_MEM_READ_WRITE | (cl_mem_flags)1 << 63)
REFUSED(all_flags, ~(cl_mem_flags)0)
