/* SPDX-License-Identifier: Apache-2.0 */
#include "in_place.h"

struct fake_vulkan *in_place_reset(void)
{
	struct fake_vulkan *vk = opaque_reset();

	stub_set(STUB_COPYING_MAP, 1);
	stub_set(STUB_OPAQUE_STAGED, 1);
	setenv("CLIMPORT_HOST_PTR", "1", 1);
	return vk;
}

void in_place_open(void)
{
	in_place_reset();
	fixture_open();
}

void in_place_close(void)
{
	opaque_close();
	unsetenv("CLIMPORT_HOST_PTR");
	unsetenv("CLIMPORT_VERSION");
}

static cl_mem test_in_place_create_any(cl_mem_flags flags, void *memory, size_t size)
{
	cl_int err = 1;
	cl_mem mem =
		cl.clCreateBuffer(fix.context, flags | CL_MEM_USE_HOST_PTR, size, memory, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(mem);
	return mem;
}

cl_mem test_in_place_create(cl_mem_flags flags, void *memory, size_t size)
{
	cl_mem mem = test_in_place_create_any(flags, memory, size);

	EXPECT(stub_arg("clCreateBuffer", 3) != (uintptr_t)memory);
	return mem;
}

cl_mem test_in_place_create_own(cl_mem_flags flags, void *memory, size_t size)
{
	cl_mem mem = test_in_place_create_any(flags, memory, size);

	EXPECT_EQ(stub_arg("clCreateBuffer", 1), flags | CL_MEM_USE_HOST_PTR);
	EXPECT_EQ(stub_arg("clCreateBuffer", 2), size);
	EXPECT_EQ(stub_arg("clCreateBuffer", 3), (uintptr_t)memory);
	return mem;
}

bool test_in_place_is(cl_mem mem, unsigned char *memory)
{
	const unsigned char before = *memory;

	fixture_increment(mem);
	return *memory == (unsigned char)(before + 1);
}
