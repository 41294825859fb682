/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/calls/properties.h"

#include <stdbool.h>

#include "util/log.h"

#define DEVICE_FLAGS (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
#define HOST_FLAGS (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)

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

static const struct {
	cl_import_properties_arm name;
	cl_int (*set)(struct properties *p, cl_import_properties_arm value);
} known[] = {
	{ CL_IMPORT_TYPE_ARM, type_set },
	{ CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, consistency_set },
};

/* Properties and values of the specification that a driver alone can have. */
#define ANDROID_ALONE "Android's hardware buffers exist on Android alone"

static const struct {
	cl_import_properties_arm number;
	const char *name, *why;
} of_drivers[] = {
	{ CL_IMPORT_TYPE_PROTECTED_ARM, "CL_IMPORT_TYPE_PROTECTED_ARM",
	  "is for drivers with cl_arm_import_memory_protected, and for dma-bufs" },
	{ CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM, "CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM",
	  "is not supported: " ANDROID_ALONE },
	{ CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM,
	  "CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM", "is not supported: " ANDROID_ALONE },
	{ CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM,
	  "CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM", "is not supported: " ANDROID_ALONE },
};

/* Logs why a property, or its value, is refused.  False: the number is not a driver's. */
static bool properties_log_of_driver(cl_import_properties_arm number)
{
	for (size_t i = 0; i < sizeof(of_drivers) / sizeof(of_drivers[0]); i++) {
		if (of_drivers[i].number != number)
			continue;
		log_error("%s %s", of_drivers[i].name, of_drivers[i].why);
		return true;
	}
	return false;
}

#define KNOWN (sizeof(known) / sizeof(known[0]))

static size_t known_find(cl_import_properties_arm name)
{
	size_t i = 0;

	while (i < KNOWN && known[i].name != name)
		i++;
	return i;
}

static cl_int pair_parse(const cl_import_properties_arm *pair, bool *seen, struct properties *p)
{
	size_t i = known_find(pair[0]);

	if (i == KNOWN) {
		if (!properties_log_of_driver(pair[0]))
			log_error("property %#llx is not supported", (unsigned long long)pair[0]);
		return CL_INVALID_PROPERTY;
	}
	if (seen[i]) {
		log_error("property %#llx is given twice", (unsigned long long)pair[0]);
		return CL_INVALID_PROPERTY;
	}
	seen[i] = true;
	if (known[i].set(p, pair[1])) {
		if (pair[0] != CL_IMPORT_TYPE_ARM || !properties_log_of_driver(pair[1]))
			log_error("property %#llx has the unsupported value %#llx",
				  (unsigned long long)pair[0], (unsigned long long)pair[1]);
		return CL_INVALID_PROPERTY;
	}
	return CL_SUCCESS;
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
		log_error("dma-buf data consistency is asked for an import that is not a dma-buf");
		return CL_INVALID_PROPERTY;
	}
	*out = p;
	return CL_SUCCESS;
}

static bool more_than_one(cl_mem_flags flags)
{
	return flags & (flags - 1);
}

cl_int flags_parse(cl_mem_flags flags, cl_mem_flags *effective)
{
	flags &= ~(cl_mem_flags)CL_MEM_USE_HOST_PTR; /* "this flag has no effect, it is ignored" */
	if (flags & ~(cl_mem_flags)(DEVICE_FLAGS | HOST_FLAGS)) {
		log_error("memory flags %#llx are not valid for an import",
			  (unsigned long long)flags);
		return CL_INVALID_VALUE;
	}
	if (more_than_one(flags & DEVICE_FLAGS) || more_than_one(flags & HOST_FLAGS)) {
		log_error("memory flags %#llx exclude each other", (unsigned long long)flags);
		return CL_INVALID_VALUE;
	}
	*effective = flags & DEVICE_FLAGS ? flags : flags | CL_MEM_READ_WRITE;
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
	flags &= ~(cl_mem_flags)DEVICE_FLAGS;
	return flags | (access & IMPORT_READ ? CL_MEM_READ_ONLY : CL_MEM_WRITE_ONLY);
}
