/* SPDX-License-Identifier: Apache-2.0 */
#include "util/cl_names.h"

#include <CL/cl_ext.h>
#include <limits.h>

#include "harness.h"

static const struct error_row {
	const char *name; /* also the text */
	int error;
} error_rows[] = {
	{ "CL_SUCCESS", CL_SUCCESS },
	{ "CL_DEVICE_NOT_FOUND", CL_DEVICE_NOT_FOUND },
	{ "CL_KERNEL_ARG_INFO_NOT_AVAILABLE", CL_KERNEL_ARG_INFO_NOT_AVAILABLE },
	{ "CL_INVALID_OPERATION", CL_INVALID_OPERATION },
	{ "CL_PLATFORM_NOT_FOUND_KHR", CL_PLATFORM_NOT_FOUND_KHR },
	{ "the unknown error -9999", -9999 },
	{ "the unknown error -2147483648", INT_MIN },
	{ "the unknown error 719", 719 },
};

TEST_EACH_AS(errors, "", struct error_row, error_rows,
	     "An error has its name, or stays a number that is called an error.")
{
	EXPECT(!strcmp(cl_error_name(row->error), row->name));
}

TEST(all_errors, "Each error of OpenCL 3.0 has a name.")
{
	for (int error = 0; error >= CL_KERNEL_ARG_INFO_NOT_AVAILABLE; error--)
		EXPECT(!strncmp(cl_error_name(error), "CL_", 3));
	for (int error = CL_INVALID_VALUE; error >= CL_MAX_SIZE_RESTRICTION_EXCEEDED; error--)
		EXPECT(!strncmp(cl_error_name(error), "CL_", 3));
}

static const struct flags_row {
	const char *name; /* also the text */
	uint64_t flags;
} flags_rows[] = {
	{ "0", 0 },
	{ "CL_MEM_READ_ONLY", CL_MEM_READ_ONLY },
	{ "CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS", CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS },
	{ "CL_MEM_READ_ONLY | 0x8000000000000000", CL_MEM_READ_ONLY | (uint64_t)1 << 63 },
	{ "CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR | "
	  "CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PT...",
	  UINT64_MAX },
};

TEST_EACH_AS(flags, "", struct flags_row, flags_rows,
	     "Memory flags have the names of their bits, and what is unknown as a number.")
{
	EXPECT(!strcmp(cl_mem_flags_names(row->flags), row->name));
}

TEST(two_in_a_sentence, "Two unknown numbers have room in one sentence.")
{
	char text[64];

	snprintf(text, sizeof(text), "%s, %s", cl_channel_order_name(1), cl_channel_type_name(2));
	EXPECT(!strcmp(text, "channel order 0x1, channel type 0x2"));
	snprintf(text, sizeof(text), "%s, %s", cl_channel_order_name(CL_RG),
		 cl_channel_type_name(CL_UNORM_INT8));
	EXPECT(!strcmp(text, "CL_RG, CL_UNORM_INT8"));
}

TEST(imports, "A property of clImportMemoryARM and a type of memory have their names.")
{
	EXPECT(!strcmp(cl_import_name(CL_IMPORT_TYPE_ARM), "CL_IMPORT_TYPE_ARM"));
	EXPECT(!strcmp(cl_import_name(CL_IMPORT_TYPE_HOST_ARM), "CL_IMPORT_TYPE_HOST_ARM"));
	EXPECT(!strcmp(cl_import_name(-1), "0xffffffffffffffff"));
}
