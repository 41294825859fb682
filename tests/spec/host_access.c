/* SPDX-License-Identifier: Apache-2.0 */
/* From version 1.1.0 on: the sixteen calls work, and what they move is compared. */
#include "calls.h"
#include "kernels.h"

#define LIST                                                                                    \
	"Prior to version 1.1.0, CL_INVALID_OPERATION when an imported memory object has been " \
	"passed to one of the following API functions: "

static void expect_event(cl_event event)
{
	EXPECT(event != NULL);
	EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
	EXPECT_EQ(clReleaseEvent(event), CL_SUCCESS);
}

static void expect_allowed(const struct call_row *row, enum memory_type type)
{
	struct object o;
	struct call c;

	need_1_1();
	object_make(&o, row->shape, type, CL_MEM_READ_WRITE);
	call_prepare(&c, row, &o);
	EXPECT_EQ(row->run(&c), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	expect_event(c.event);
	if (row->role == SOURCE) {
		EXPECT(call_other_is(&c, row, OBJECT_SEED));
		EXPECT(object_is(&o, OBJECT_SEED));
	} else {
		EXPECT(object_holds(&o, c.host));
	}
	EXPECT(object_padding_is_intact(&o));
}

#define ALLOWED(name, api, shape, role, partner)                                        \
	TEST(allowed_##name, "R12-20:" #api " " LIST #api)                              \
	{                                                                               \
		static const struct call_row row = CALL_ROW(api, shape, role, partner); \
		expect_allowed(&row, HOST_MEMORY);                                      \
	}

CALLS(ALLOWED)

#define ALL_TYPES                                                                       \
	"R12-35 Version 1.1.0 of cl_arm_import_memory adds support for host access to " \
	"imported memory for all memory types."

/* What the host writes by one call it reads by another, and sees in its memory. */
TEST(allowed_on_host_memory, "R12-35 Version 1.1.0 of cl_arm_import_memory adds support for host "
			     "access to imported memory for all memory types.")
{
	unsigned char *memory = spec_map_pages(2), *seen = spec_map_pages(2);
	size_t size = 2 * spec.page;
	cl_mem mem;

	need_1_1();
	mem = spec_import_host(CL_MEM_READ_WRITE, memory, size);
	spec_fill_memory(seen, size, 4);
	plain_write(mem, seen, size);
	EXPECT(spec_memory_is(memory, size, 4));
	spec_fill_memory(memory, size, 9);
	plain_read(mem, seen, size);
	EXPECT(spec_memory_is(seen, size, 9));
}

#define ALLOWED_DMA_BUF(name, api, shape, role, partner)                                \
	TEST(allowed_dma_buf_##name, ALL_TYPES)                                         \
	{                                                                               \
		static const struct call_row row = CALL_ROW(api, shape, role, partner); \
		expect_allowed(&row, DMA_BUF_MEMORY);                                   \
	}

CALLS(ALLOWED_DMA_BUF)
