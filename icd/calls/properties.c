/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/calls/properties.h"

#include <stdbool.h>

#include "icd/mem_flags.h"
#include "util/cl_names.h"
#include "util/log.h"

#define ON_ANDROID "is not supported: Android's hardware buffers exist on Android alone"

static cl_int type_set(struct properties *p, cl_import_properties_arm value)
{
	if (value == CL_IMPORT_TYPE_HOST_ARM)
		p->type = IMPORT_HOST;
	else if (value == CL_IMPORT_TYPE_DMA_BUF_ARM)
		p->type = IMPORT_DMABUF;
	else
		return CL_INVALID_PROPERTY;
	return CL_SUCCESS;
}

static cl_int consistency_set(struct properties *p, cl_import_properties_arm value)
{
	if (value != CL_TRUE && value != CL_FALSE)
		return CL_INVALID_PROPERTY;
	p->consistency = value ? CONSISTENCY_RUNTIME : CONSISTENCY_APPLICATION;
	return CL_SUCCESS;
}

/* CL_FALSE: "the memory is imported with no special behaviour, this is the default". */
static cl_int protected_set(struct properties *p, cl_import_properties_arm value)
{
	(void)p;
	return value == CL_FALSE ? CL_SUCCESS : CL_INVALID_PROPERTY;
}

static const struct {
	cl_import_properties_arm name;
	cl_int (*set)(struct properties *p, cl_import_properties_arm value);
	const char *values;
} known[] = {
	{ CL_IMPORT_TYPE_ARM, type_set, "CL_IMPORT_TYPE_HOST_ARM or CL_IMPORT_TYPE_DMA_BUF_ARM" },
	{ CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, consistency_set,
	  "CL_TRUE or CL_FALSE" },
	{ CL_IMPORT_TYPE_PROTECTED_ARM, protected_set,
	  "CL_FALSE: protected memory needs a driver with cl_arm_import_memory_protected" },
};

/* Numbers of the specification that are no property, or no type, of the layer. */
static const struct {
	cl_import_properties_arm number;
	const char *why;
} strangers[] = {
	{ CL_IMPORT_TYPE_HOST_ARM, "is no property, but a value of CL_IMPORT_TYPE_ARM" },
	{ CL_IMPORT_TYPE_DMA_BUF_ARM, "is no property, but a value of CL_IMPORT_TYPE_ARM" },
	{ CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM, ON_ANDROID },
	{ CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM, ON_ANDROID },
	{ CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM, ON_ANDROID },
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

static const char *stranger_why(cl_import_properties_arm number)
{
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		if (strangers[i].number == number)
			return strangers[i].why;
	return "is no property of clImportMemoryARM";
}

static cl_int pair_parse(const cl_import_properties_arm *pair, bool *seen, struct properties *p)
{
	size_t i = 0;

	while (i < KNOWN && known[i].name != pair[0])
		i++;
	if (i == KNOWN) {
		log_error("%s %s", cl_import_name(pair[0]), stranger_why(pair[0]));
		return CL_INVALID_PROPERTY;
	}
	if (seen[i]) {
		log_error("%s is given twice", cl_import_name(pair[0]));
		return CL_INVALID_PROPERTY;
	}
	seen[i] = true;
	if (!known[i].set(p, pair[1]))
		return CL_SUCCESS;
	if (pair[1] == CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM)
		log_error("%s %s", cl_import_name(pair[1]), ON_ANDROID);
	else
		log_error("%s is %s, and has to be %s", cl_import_name(pair[0]),
			  pair[1] == CL_TRUE ? "CL_TRUE" : cl_import_name(pair[1]),
			  known[i].values);
	return CL_INVALID_PROPERTY;
}

cl_int properties_parse(const cl_import_properties_arm *list, struct properties *out)
{
	struct properties p = { IMPORT_HOST, CONSISTENCY_DEFAULT };
	bool seen[KNOWN] = { false };

	for (; list && *list; list += 2) {
		cl_int err = pair_parse(list, seen, &p);

		if (err)
			return err;
	}
	if (p.type != IMPORT_DMABUF && p.consistency != CONSISTENCY_DEFAULT) {
		log_error("CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM is for dma-bufs: "
			  "CL_IMPORT_TYPE_ARM has to be CL_IMPORT_TYPE_DMA_BUF_ARM");
		return CL_INVALID_PROPERTY;
	}
	*out = p;
	return CL_SUCCESS;
}

enum import_type properties_type(const cl_import_properties_arm *list)
{
	for (; list && *list; list += 2) {
		if (*list != CL_IMPORT_TYPE_ARM)
			continue;
		if (list[1] == CL_IMPORT_TYPE_DMA_BUF_ARM)
			return IMPORT_DMABUF;
		return list[1] == CL_IMPORT_TYPE_HOST_ARM ? IMPORT_HOST : IMPORT_TYPES;
	}
	return IMPORT_HOST;
}

cl_int flags_parse(cl_mem_flags flags, cl_mem_flags *effective)
{
	cl_mem_flags others;

	flags &= ~(cl_mem_flags)CL_MEM_USE_HOST_PTR; /* "this flag has no effect, it is ignored" */
	others = flags & ~(MEM_FLAGS_ACCESS | MEM_FLAGS_HOST);
	if (others) {
		log_error("an import cannot have the flags %s", cl_mem_flags_names(others));
		return CL_INVALID_VALUE;
	}
	if (mem_flags_exclude_each_other(flags)) {
		log_error("the flags %s exclude each other", cl_mem_flags_names(flags));
		return CL_INVALID_VALUE;
	}
	*effective = flags & MEM_FLAGS_ACCESS ? flags : flags | CL_MEM_READ_WRITE;
	return CL_SUCCESS;
}

unsigned int flags_access(cl_mem_flags flags)
{
	if (flags & CL_MEM_READ_ONLY)
		return IMPORT_READ;
	if (flags & CL_MEM_WRITE_ONLY)
		return IMPORT_WRITE;
	return IMPORT_READ | IMPORT_WRITE;
}

cl_mem_flags flags_restrict(cl_mem_flags flags, unsigned int access)
{
	if (!(flags_access(flags) & ~access))
		return flags;
	return (flags & ~MEM_FLAGS_ACCESS) | CL_MEM_READ_ONLY;
}
