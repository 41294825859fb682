/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of devices.  The text says "importing ... is supported" of normal allocations, and an
 * error "when mapping is not possible".  A limit counts in two cases: the device documents the
 * limit, or the device accepts an ordinary import of equal size.  Then a test chooses other memory,
 * or is skipped.
 */
#include "spec.h"

bool takes_host(cl_mem_flags flags, void *memory, size_t size)
{
	cl_int error = 1;
	cl_mem mem;

	EXPECT(spec.import != NULL);
	mem = spec.import(spec.context, flags, NULL, memory, size, &error);
	if (error == CL_INVALID_OPERATION && !mem)
		return false;
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	return true;
}

/* The documented alignment is the last resort: the function tries smaller alignments only. */
static size_t find_alignment(void)
{
	size_t documented = device_number(CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
	size_t bytes = spec.cache_line;
	unsigned char *memory;

	if (documented <= bytes || spec.exact)
		return bytes;
	memory = spec_map_pages(2 + documented / spec.page);
	while (bytes < documented && !takes_host(CL_MEM_READ_WRITE, memory + bytes, spec.page))
		bytes *= 2;
	return bytes < documented ? bytes : documented;
}

size_t host_alignment(void)
{
	static size_t known;

	need_host();
	if (!known)
		known = find_alignment();
	return known;
}

void need_alignment(size_t bytes)
{
	if (bytes % host_alignment())
		test_skip("device takes addresses that are multiples of %zu bytes, not of %zu: "
			  "refused with %d",
			  host_alignment(), bytes, CL_INVALID_OPERATION);
}

cl_mem import_host_kind(const char *kind, cl_mem_flags flags, void *memory, size_t size)
{
	cl_int error = 1;
	cl_mem mem;

	need_host();
	EXPECT(spec.import != NULL);
	mem = released_later(spec.import(spec.context, flags, NULL, memory, size, &error));
	if (error == CL_INVALID_OPERATION && !mem && !spec.exact &&
	    takes_host(flags, spec_map_pages((size + spec.page - 1) / spec.page), size))
		test_skip("%s: refused with %d", kind, error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT(mem != NULL);
	return mem;
}
