/* SPDX-License-Identifier: Apache-2.0 */
#include "util/cl_names.h"

#define CL_ENABLE_BETA_EXTENSIONS /* cl_khr_command_buffer */
#include <CL/cl_ext.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct cl_name {
	intptr_t number;
	const char *name;
};

/* A row of a table, which ends with a row without a name. */
#define ROW(name)           \
	{                   \
		name, #name \
	}

static const struct cl_name cl_errors[] = {
	ROW(CL_SUCCESS),
	ROW(CL_DEVICE_NOT_FOUND),
	ROW(CL_DEVICE_NOT_AVAILABLE),
	ROW(CL_COMPILER_NOT_AVAILABLE),
	ROW(CL_MEM_OBJECT_ALLOCATION_FAILURE),
	ROW(CL_OUT_OF_RESOURCES),
	ROW(CL_OUT_OF_HOST_MEMORY),
	ROW(CL_PROFILING_INFO_NOT_AVAILABLE),
	ROW(CL_MEM_COPY_OVERLAP),
	ROW(CL_IMAGE_FORMAT_MISMATCH),
	ROW(CL_IMAGE_FORMAT_NOT_SUPPORTED),
	ROW(CL_BUILD_PROGRAM_FAILURE),
	ROW(CL_MAP_FAILURE),
	ROW(CL_MISALIGNED_SUB_BUFFER_OFFSET),
	ROW(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
	ROW(CL_COMPILE_PROGRAM_FAILURE),
	ROW(CL_LINKER_NOT_AVAILABLE),
	ROW(CL_LINK_PROGRAM_FAILURE),
	ROW(CL_DEVICE_PARTITION_FAILED),
	ROW(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
	ROW(CL_INVALID_VALUE),
	ROW(CL_INVALID_DEVICE_TYPE),
	ROW(CL_INVALID_PLATFORM),
	ROW(CL_INVALID_DEVICE),
	ROW(CL_INVALID_CONTEXT),
	ROW(CL_INVALID_QUEUE_PROPERTIES),
	ROW(CL_INVALID_COMMAND_QUEUE),
	ROW(CL_INVALID_HOST_PTR),
	ROW(CL_INVALID_MEM_OBJECT),
	ROW(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR),
	ROW(CL_INVALID_IMAGE_SIZE),
	ROW(CL_INVALID_SAMPLER),
	ROW(CL_INVALID_BINARY),
	ROW(CL_INVALID_BUILD_OPTIONS),
	ROW(CL_INVALID_PROGRAM),
	ROW(CL_INVALID_PROGRAM_EXECUTABLE),
	ROW(CL_INVALID_KERNEL_NAME),
	ROW(CL_INVALID_KERNEL_DEFINITION),
	ROW(CL_INVALID_KERNEL),
	ROW(CL_INVALID_ARG_INDEX),
	ROW(CL_INVALID_ARG_VALUE),
	ROW(CL_INVALID_ARG_SIZE),
	ROW(CL_INVALID_KERNEL_ARGS),
	ROW(CL_INVALID_WORK_DIMENSION),
	ROW(CL_INVALID_WORK_GROUP_SIZE),
	ROW(CL_INVALID_WORK_ITEM_SIZE),
	ROW(CL_INVALID_GLOBAL_OFFSET),
	ROW(CL_INVALID_EVENT_WAIT_LIST),
	ROW(CL_INVALID_EVENT),
	ROW(CL_INVALID_OPERATION),
	ROW(CL_INVALID_GL_OBJECT),
	ROW(CL_INVALID_BUFFER_SIZE),
	ROW(CL_INVALID_MIP_LEVEL),
	ROW(CL_INVALID_GLOBAL_WORK_SIZE),
	ROW(CL_INVALID_PROPERTY),
	ROW(CL_INVALID_IMAGE_DESCRIPTOR),
	ROW(CL_INVALID_COMPILER_OPTIONS),
	ROW(CL_INVALID_LINKER_OPTIONS),
	ROW(CL_INVALID_DEVICE_PARTITION_COUNT),
	ROW(CL_INVALID_PIPE_SIZE),
	ROW(CL_INVALID_DEVICE_QUEUE),
	ROW(CL_INVALID_SPEC_ID),
	ROW(CL_MAX_SIZE_RESTRICTION_EXCEEDED),
	ROW(CL_PLATFORM_NOT_FOUND_KHR),
	ROW(CL_INVALID_ACCELERATOR_INTEL),
	ROW(CL_CONTEXT_TERMINATED_KHR),
	ROW(CL_INVALID_COMMAND_BUFFER_KHR),
	ROW(CL_INVALID_SYNC_POINT_WAIT_LIST_KHR),
	ROW(CL_INCOMPATIBLE_COMMAND_QUEUE_KHR),
	{ 0, NULL },
};

static const struct cl_name cl_imports[] = {
	ROW(CL_IMPORT_TYPE_ARM),
	ROW(CL_IMPORT_TYPE_HOST_ARM),
	ROW(CL_IMPORT_TYPE_DMA_BUF_ARM),
	ROW(CL_IMPORT_TYPE_PROTECTED_ARM),
	ROW(CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM),
	ROW(CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM),
	ROW(CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM),
	ROW(CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM),
	{ 0, NULL },
};

static const struct cl_name cl_mem_flags_bits[] = {
	ROW(CL_MEM_READ_WRITE),
	ROW(CL_MEM_WRITE_ONLY),
	ROW(CL_MEM_READ_ONLY),
	ROW(CL_MEM_USE_HOST_PTR),
	ROW(CL_MEM_ALLOC_HOST_PTR),
	ROW(CL_MEM_COPY_HOST_PTR),
	ROW(CL_MEM_HOST_WRITE_ONLY),
	ROW(CL_MEM_HOST_READ_ONLY),
	ROW(CL_MEM_HOST_NO_ACCESS),
	ROW(CL_MEM_SVM_FINE_GRAIN_BUFFER),
	ROW(CL_MEM_SVM_ATOMICS),
	ROW(CL_MEM_KERNEL_READ_AND_WRITE),
	{ 0, NULL },
};

static const struct cl_name cl_channel_orders[] = {
	ROW(CL_R),     ROW(CL_A),     ROW(CL_RG),    ROW(CL_RA),	ROW(CL_RGB),
	ROW(CL_RGBA),  ROW(CL_BGRA),  ROW(CL_ARGB),  ROW(CL_INTENSITY), ROW(CL_LUMINANCE),
	ROW(CL_Rx),    ROW(CL_RGx),   ROW(CL_RGBx),  ROW(CL_DEPTH),	ROW(CL_sRGB),
	ROW(CL_sRGBx), ROW(CL_sRGBA), ROW(CL_sBGRA), ROW(CL_ABGR),	{ 0, NULL },
};

static const struct cl_name cl_channel_types[] = {
	ROW(CL_SNORM_INT8),
	ROW(CL_SNORM_INT16),
	ROW(CL_UNORM_INT8),
	ROW(CL_UNORM_INT16),
	ROW(CL_UNORM_SHORT_565),
	ROW(CL_UNORM_SHORT_555),
	ROW(CL_UNORM_INT_101010),
	ROW(CL_SIGNED_INT8),
	ROW(CL_SIGNED_INT16),
	ROW(CL_SIGNED_INT32),
	ROW(CL_UNSIGNED_INT8),
	ROW(CL_UNSIGNED_INT16),
	ROW(CL_UNSIGNED_INT32),
	ROW(CL_HALF_FLOAT),
	ROW(CL_FLOAT),
	ROW(CL_UNORM_INT_101010_2),
	{ 0, NULL },
};

/* NULL: the number is not in the table. */
static const char *cl_name_find(const struct cl_name *table, intptr_t number)
{
	while (table->name && table->number != number)
		table++;
	return table->name;
}

const char *cl_error_known(int error)
{
	return cl_name_find(cl_errors, error);
}

const char *cl_name_error(int error, char text[CL_NAME_SIZE])
{
	const char *name = cl_error_known(error);

	if (name)
		return name;
	snprintf(text, CL_NAME_SIZE, "the unknown error %d", error);
	return text;
}

static const char *cl_name_hex(const struct cl_name *table, const char *what, intptr_t number,
			       char text[CL_NAME_SIZE])
{
	const char *name = cl_name_find(table, number);

	if (name)
		return name;
	snprintf(text, CL_NAME_SIZE, "%s%#jx", what, (uintmax_t)number);
	return text;
}

const char *cl_name_import(intptr_t number, char text[CL_NAME_SIZE])
{
	return cl_name_hex(cl_imports, "", number, text);
}

const char *cl_name_channel_order(unsigned int order, char text[CL_NAME_SIZE])
{
	return cl_name_hex(cl_channel_orders, "channel order ", order, text);
}

const char *cl_name_channel_type(unsigned int type, char text[CL_NAME_SIZE])
{
	return cl_name_hex(cl_channel_types, "channel type ", type, text);
}

/* False: no room. */
static bool cl_flags_add(char text[CL_FLAGS_NAMES_SIZE], const char *name)
{
	const size_t used = strlen(text);
	const size_t length = (size_t)snprintf(text + used, CL_FLAGS_NAMES_SIZE - used, "%s%s",
					       used ? " | " : "", name);

	return length < CL_FLAGS_NAMES_SIZE - used;
}

const char *cl_name_mem_flags(uint64_t flags, char text[CL_FLAGS_NAMES_SIZE])
{
	char rest[CL_NAME_SIZE];
	bool fits = true;

	text[0] = '\0';
	for (const struct cl_name *bit = cl_mem_flags_bits; bit->name && fits; bit++) {
		if (flags & (uint64_t)bit->number)
			fits = cl_flags_add(text, bit->name);
		flags &= ~(uint64_t)bit->number;
	}
	snprintf(rest, sizeof(rest), "%#jx", (uintmax_t)flags);
	if (fits && (flags || !*text))
		fits = cl_flags_add(text, rest);
	if (!fits)
		strcpy(text + CL_FLAGS_NAMES_SIZE - sizeof("..."), "...");
	return text;
}
