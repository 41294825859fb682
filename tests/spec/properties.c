/* SPDX-License-Identifier: Apache-2.0 */
/* The list of properties. */
#include "kernels.h"

typedef cl_import_properties_arm property;

static cl_int refused_with(const property *properties)
{
	return spec_import_error(CL_MEM_READ_WRITE, properties, spec_map_pages(1), spec.page);
}

static void expect_default(const property *properties)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem;

	need_host();
	mem = spec_import(CL_MEM_READ_WRITE, properties, memory, spec.page);
	expect_shared(mem, memory, spec.page);
}

/* Values behind the terminator are no part of the list. */
TEST(list_ends_at_zero, "R6-15 The properties argument provides a list of key value pairs, with a "
			"zero terminator.")
{
	expect_default(
		(property[]){ CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0, 0x7fff, 0x7fff });
}

TEST(list_is_not_changed,
     "R6-15 The properties argument provides a list of key value pairs, with a "
     "zero terminator.")
{
	property list[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0, 7, 8, 9 };
	const property before[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0, 7, 8, 9 };

	expect_default(list);
	EXPECT(!memcmp(list, before, sizeof(list)));
}

TEST(null_list, "R6-16 properties can be NULL or point to a single zero value if the default "
		"behaviour is desired.")
{
	expect_default(NULL);
}

TEST(empty_list, "R6-16 properties can be NULL or point to a single zero value if the default "
		 "behaviour is desired.")
{
	expect_default((property[]){ 0 });
}

TEST(empty_list_ends_at_zero, "R6-16 properties can be NULL or point to a single zero value if the "
			      "default behaviour is desired.")
{
	expect_default((property[]){ 0, 0x7fff, 0x7fff });
}

TEST(type_property, "R6-17 Valid <properties> are: CL_IMPORT_TYPE_ARM")
{
	expect_default((property[]){ CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 });
}

TEST(type_host,
     "R6-18 Valid values for CL_IMPORT_TYPE_ARM are: CL_IMPORT_TYPE_HOST_ARM - this is the default")
{
	expect_default((property[]){ CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 });
}

/* The address of any int is fine as host memory. */
TEST(default_is_not_dma_buf,
     "R6-18 Valid values for CL_IMPORT_TYPE_ARM are: CL_IMPORT_TYPE_HOST_ARM - this is the default")
{
	unsigned char *memory = spec_map_pages(1);

	memset(memory, 0xff, spec.page);
	spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
}

TEST(null_list_takes_defaults, "R6-20 If <properties> is NULL, default values are taken.")
{
	expect_default(NULL);
}

/* A pointer, first as memory and then as the address of a descriptor. */
TEST(memory_by_type, "R6-21 Valid <memory> pointer is dependent on the TYPE passed in properties.")
{
	unsigned char *memory = spec_map_pages(1);

	need_dma_buf();
	memset(memory, 0xff, spec.page);
	spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	spec_import_error(CL_MEM_READ_WRITE,
			  (property[]){ CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM, 0 }, memory,
			  spec.page);
}

static const struct list_row {
	const char *name;
	property list[5];
} invalid_lists[] = {
	{ "unknown_property", { 0x7ead, 1, 0 } },
	{ "unknown_property_of_zero", { 0x7ead, 0, 0 } },
	{ "unknown_property_behind_type",
	  { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0x7ead, 1, 0 } },
	{ "unknown_property_before_type",
	  { 0x7ead, 1, CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 } },
	{ "negative_property", { -1, -1, 0 } },
	{ "key_and_value_swapped", { CL_IMPORT_TYPE_HOST_ARM, CL_IMPORT_TYPE_ARM, 0 } },
	{ "type_zero", { CL_IMPORT_TYPE_ARM, 0, 0 } },
	{ "type_one", { CL_IMPORT_TYPE_ARM, 1, 0 } },
	{ "type_negative", { CL_IMPORT_TYPE_ARM, -1, 0 } },
	{ "type_is_its_key", { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_ARM, 0 } },
	{ "type_with_high_bits", { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM | INTPTR_MIN, 0 } },
	{ "property_of_contexts", { CL_CONTEXT_PLATFORM, 0, 0 } },
};

TEST_EACH_AS(invalid_lists, "", struct list_row, invalid_lists,
	     "R6-24 CL_INVALID_PROPERTY when invalid properties are passed.")
{
	EXPECT_EQ(refused_with(row->list), CL_INVALID_PROPERTY);
}

/* The text does not define lists with a property twice. */
static void expect_no_duplicate(const property *list)
{
	cl_int error = CL_SUCCESS;

	if (spec.exact)
		EXPECT_EQ(refused_with(list), CL_INVALID_PROPERTY);
	released_later(spec.import(spec.context, CL_MEM_READ_WRITE, list, spec_map_pages(1),
				   spec.page, &error));
	EXPECT(error == CL_SUCCESS || error == CL_INVALID_PROPERTY);
}

TEST(type_twice, "R6-24 CL_INVALID_PROPERTY when invalid properties are passed.")
{
	need_host();
	expect_no_duplicate((property[]){ CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM,
					  CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 });
}

TEST(list_that_seems_to_have_no_end,
     "R6-24 CL_INVALID_PROPERTY when invalid properties are passed.")
{
	property list[2 * 4096 + 1] = { 0 };

	need_host();
	for (size_t i = 0; i < 2 * 4096; i++)
		list[i] = i % 2 ? CL_IMPORT_TYPE_HOST_ARM : CL_IMPORT_TYPE_ARM;
	expect_no_duplicate(list);
}

TEST(unknown_property_many_times, "R6-24 CL_INVALID_PROPERTY when invalid properties are passed.")
{
	property list[2 * 4096 + 1] = { 0 };

	for (size_t i = 0; i < 2 * 4096; i++)
		list[i] = 0x7ead;
	EXPECT_EQ(refused_with(list), CL_INVALID_PROPERTY);
}
