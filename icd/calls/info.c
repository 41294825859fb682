/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension names.  A device has the names of the types that work on the device.  A platform
 * has the names of all its devices: some programs look only at the device, or only at the platform.
 */
#include <stdlib.h>
#include <string.h>

#include "icd/driver_info.h"
#include "icd/info_answer.h"
#include "icd/config.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/objects/device.h"
#include "icd/queries/support.h"
#include "util/log.h"

#define MAX_NAMES (IMPORT_TYPES + 4)

struct names {
	const char *name[MAX_NAMES];
	cl_version version[MAX_NAMES];
	size_t count;
};

static void names_add(struct names *names, const char *name, cl_version version)
{
	names->name[names->count] = name;
	names->version[names->count++] = version;
}

/* 2D images on imports, if the driver creates no 2D images from buffers. */
static bool adds_image2d(unsigned int takes)
{
	return config.image2d_from_buffer && takes & TAKES_IMAGE2D;
}

/* Names of the layer; the driver reports its own names. */
static void names_of(struct names *names, unsigned int takes)
{
	if (takes & ((1u << IMPORT_TYPES) - 1))
		names_add(names, "cl_arm_import_memory", config.version);
	for (int type = 0; type < IMPORT_TYPES; type++)
		if (takes & 1u << type)
			names_add(names, type_extension(type), config.version);
	if (takes & TAKES_EXTERNAL) {
		names_add(names, "cl_khr_external_memory", CL_MAKE_VERSION(1, 0, 1));
		names_add(names, "cl_khr_external_memory_dma_buf", CL_MAKE_VERSION(1, 0, 0));
	}
	if (adds_image2d(takes))
		names_add(names, "cl_khr_image2d_from_buffer", CL_MAKE_VERSION(1, 0, 0));
	else if (takes & TAKES_IMAGE2D && !config.image2d_is_set)
		log_debug("cl_khr_image2d_from_buffer would be true of imports alone and is not "
			  "reported: climport run --image2d or CLIMPORT_IMAGE2D_FROM_BUFFER=1 "
			  "reports it");
}

/* An information query of a platform or a device. */
struct query {
	cl_platform_id platform;
	cl_device_id device; /* NULL: the query is of the platform */
	cl_uint name;
};

static cl_int query_driver(const struct query *q, size_t size, void *value, size_t *size_ret)
{
	if (q->device)
		return next.clGetDeviceInfo(q->device, q->name, size, value, size_ret);
	return next.clGetPlatformInfo(q->platform, q->name, size, value, size_ret);
}

/* The driver's answer, with @extra bytes behind; the caller frees *@bytes. */
static cl_int query_alloc(const struct query *q, size_t extra, char **bytes, size_t *length)
{
	cl_int err = query_driver(q, 0, NULL, length);

	if (err)
		return err;
	*bytes = calloc(1, *length + extra);
	if (!*bytes)
		return CL_OUT_OF_HOST_MEMORY;
	err = query_driver(q, *length, *bytes, NULL);
	if (err)
		free(*bytes);
	return err;
}

static cl_int answer_string(const struct query *q, const struct names *names, size_t size,
			    void *value, size_t *size_ret)
{
	size_t extra = 1, length;
	char *text;
	cl_int err;

	for (size_t i = 0; i < names->count; i++)
		extra += strlen(names->name[i]) + 1;
	err = query_alloc(q, extra, &text, &length);
	if (err)
		return err;
	for (size_t i = 0; i < names->count; i++) {
		if (has_word(text, names->name[i]))
			continue;
		if (*text && text[strlen(text) - 1] != ' ')
			strcat(text, " ");
		strcat(text, names->name[i]);
	}
	err = info_answer(text, strlen(text) + 1, size, value, size_ret);
	free(text);
	return err;
}

static bool has_name(const cl_name_version *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i].name, name))
			return true;
	return false;
}

static cl_int answer_versions(const struct query *q, const struct names *names, size_t size,
			      void *value, size_t *size_ret)
{
	cl_name_version *list;
	size_t length, count;
	char *bytes;
	cl_int err = query_alloc(q, names->count * sizeof(*list), &bytes, &length);

	if (err)
		return err;
	list = (cl_name_version *)bytes;
	count = length / sizeof(*list);
	for (size_t i = 0; i < names->count; i++) {
		if (has_name(list, count, names->name[i]))
			continue;
		list[count].version = names->version[i];
		strncpy(list[count++].name, names->name[i], sizeof(list->name) - 1);
	}
	err = info_answer(list, count * sizeof(*list), size, value, size_ret);
	free(list);
	return err;
}

/* The types of handles that the driver imports, and dma-bufs. */
static cl_int answer_handle_types(const struct query *q, unsigned int takes, size_t size,
				  void *value, size_t *size_ret)
{
	const cl_external_memory_handle_type_khr ours = CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR;
	cl_external_memory_handle_type_khr *types;
	size_t length;
	char *bytes;
	cl_int err;

	if (!(takes & TAKES_EXTERNAL))
		return query_driver(q, size, value, size_ret);
	if (query_alloc(q, sizeof(ours), &bytes, &length))
		return info_answer(&ours, sizeof(ours), size, value, size_ret);
	types = (cl_external_memory_handle_type_khr *)bytes;
	types[length / sizeof(ours)] = ours;
	err = info_answer(types, length + sizeof(ours), size, value, size_ret);
	free(bytes);
	return err;
}

cl_int CL_API_CALL layer_clGetPlatformIDs(cl_uint count, cl_platform_id *platforms,
					  cl_uint *count_ret)
{
	cl_uint mine = 0, *found = count_ret || !platforms ? count_ret : &mine;
	cl_int err = next.clGetPlatformIDs(count, platforms, found);

	for (cl_uint i = 0; !err && platforms && i < count && i < *found; i++)
		support_of_platform(platforms[i], FACTS_KEPT);
	return err;
}

cl_int CL_API_CALL layer_clGetPlatformInfo(cl_platform_id platform, cl_platform_info name,
					   size_t size, void *value, size_t *size_ret)
{
	const struct query q = { platform, NULL, name };
	struct names names = { .count = 0 };

	if (name == CL_PLATFORM_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR)
		return answer_handle_types(&q, support_of_all(platform), size, value, size_ret);
	if (name != CL_PLATFORM_EXTENSIONS && name != CL_PLATFORM_EXTENSIONS_WITH_VERSION_KHR)
		return next.clGetPlatformInfo(platform, name, size, value, size_ret);
	names_of(&names, support_of_platform(platform, FACTS_QUERY));
	if (name == CL_PLATFORM_EXTENSIONS)
		return answer_string(&q, &names, size, value, size_ret);
	return answer_versions(&q, &names, size, value, size_ret);
}

/* In pixels: 1, as any address and pitch will do. */
static cl_int answer_image_alignment(const struct query *q, size_t size, void *value,
				     size_t *size_ret)
{
	const cl_uint one = 1;

	if (!config.image2d_from_buffer || !adds_image2d(support_of_device(q->device)))
		return query_driver(q, size, value, size_ret);
	return info_answer(&one, sizeof(one), size, value, size_ret);
}

cl_int CL_API_CALL layer_clGetDeviceInfo(cl_device_id device, cl_device_info name, size_t size,
					 void *value, size_t *size_ret)
{
	const struct query q = { NULL, device, name };
	struct names names = { .count = 0 };

	switch (device ? name : 0) {
	case CL_DEVICE_EXTENSIONS:
		names_of(&names, support_of_device(device));
		return answer_string(&q, &names, size, value, size_ret);
	case CL_DEVICE_EXTENSIONS_WITH_VERSION_KHR:
		names_of(&names, support_of_device(device));
		return answer_versions(&q, &names, size, value, size_ret);
	case CL_DEVICE_IMAGE_PITCH_ALIGNMENT:
	case CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT:
		return answer_image_alignment(&q, size, value, size_ret);
	case CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR:
	case CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR:
		return answer_handle_types(&q, support_of_device(device), size, value, size_ret);
	}
	return next.clGetDeviceInfo(device, name, size, value, size_ret);
}
