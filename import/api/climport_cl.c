/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport's functions that make memory objects. */
#include <CL/climport.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "import/api/common.h"
#include "import/api/loader.h"
#include "util/cl_names.h"
#include "util/log.h"

typedef __typeof__(&clImportMemoryARM) import_fn;

/* A context has one platform, but any number of devices. */
static cl_int climport_cl_platform(cl_context context, cl_platform_id *platform)
{
	cl_device_id *devices;
	size_t count;
	cl_int err = loader_context_devices(context, &devices, &count);

	if (!err)
		err = loader_platform_of(*devices, platform);
	free(devices);
	return err;
}

/*
 * The layer's function looks at the context of each call, and is never unloaded: one look-up is
 * enough.  Without the layer the next call looks again.
 */
static import_fn climport_cl_layer(void)
{
	static _Atomic(import_fn) layer;
	import_fn known = layer;

	if (!known)
		layer = known = (import_fn)loader_function_of_layer("clImportMemoryARM");
	return known;
}

/* A driver's own function. */
static import_fn climport_cl_driver(cl_context context, cl_int *err)
{
	cl_platform_id platform;
	import_fn function;

	if (!LOADER(clGetExtensionFunctionAddressForPlatform)) {
		*err = CL_INVALID_OPERATION;
		return NULL;
	}
	*err = context ? climport_cl_platform(context, &platform) : CL_INVALID_CONTEXT;
	if (*err)
		return NULL;
	function = (import_fn)loader_function_of(platform, "clImportMemoryARM");
	if (function)
		return function;
	log_error("the context's platform has no clImportMemoryARM: is the layer loaded? "
		  "(climport run)");
	*err = CL_INVALID_OPERATION;
	return NULL;
}

static cl_mem climport_cl_import(cl_context context, cl_mem_flags flags,
				 const cl_import_properties_arm *properties, void *memory,
				 size_t size, cl_int *err)
{
	import_fn function = climport_cl_layer();

	if (!function)
		function = climport_cl_driver(context, err);
	return function ? function(context, flags, properties, memory, size, err) : NULL;
}

/* The layer's sentence of the error, or the library's.  A driver with the extension has none. */
static cl_mem climport_cl_end(cl_mem mem, cl_int err, cl_int *errcode_ret)
{
	if (!mem && !*log_last())
		log_error("the import failed with %s", cl_error_name(err));
	climport_error_end(mem ? 0 : -1);
	if (errcode_ret)
		*errcode_ret = mem ? CL_SUCCESS : err;
	return mem;
}

PUBLIC cl_mem CL_API_CALL clImportMemoryARM(cl_context context, cl_mem_flags flags,
					    const cl_import_properties_arm *properties,
					    void *memory, size_t size, cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_mem mem;

	climport_error_begin();
	mem = climport_cl_import(context, flags, properties, memory, size, &err);
	return climport_cl_end(mem, err, errcode_ret);
}

/* The range as a part of an import; the part keeps the whole. */
static cl_mem climport_cl_part_of(cl_mem whole, const struct climport_dmabuf *dmabuf, cl_int *err)
{
	const cl_buffer_region region = { dmabuf->offset, dmabuf->size };
	__typeof__(&clCreateSubBuffer) create = LOADER(clCreateSubBuffer);
	__typeof__(&clReleaseMemObject) release = LOADER(clReleaseMemObject);
	cl_mem part;

	if (!create || !release) {
		*err = CL_INVALID_OPERATION;
		return NULL;
	}
	part = create(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, err);
	release(whole);
	return part;
}

/* The pairs of a list without the end; 0 for NULL. */
static size_t climport_cl_count_properties(const cl_import_properties_arm *properties)
{
	size_t count = 0;

	while (properties && properties[2 * count])
		count++;
	return count;
}

/* Whether the list names a type; another type than a dma-buf's is an error. */
static bool climport_cl_has_type(const cl_import_properties_arm *properties, size_t count,
				 cl_int *err)
{
	for (size_t i = 0; i < count; i++) {
		if (properties[2 * i] != CL_IMPORT_TYPE_ARM)
			continue;
		if (properties[2 * i + 1] != CL_IMPORT_TYPE_DMA_BUF_ARM) {
			log_error("a dma-buf cannot be imported as %s: the type is "
				  "CL_IMPORT_TYPE_DMA_BUF_ARM",
				  cl_import_name(properties[2 * i + 1]));
			*err = CL_INVALID_PROPERTY;
		}
		return true;
	}
	return false;
}

/* The program's properties, and the type of memory.  The caller frees the list. */
static cl_import_properties_arm *climport_cl_properties(const cl_import_properties_arm *properties,
							cl_int *err)
{
	size_t count = climport_cl_count_properties(properties), at = 0;
	bool typed = climport_cl_has_type(properties, count, err);
	cl_import_properties_arm *list;

	if (*err)
		return NULL;
	list = calloc(2 * count + 3, sizeof(*list));
	if (!list) {
		*err = CL_OUT_OF_HOST_MEMORY;
		return NULL;
	}
	if (!typed) {
		list[at++] = CL_IMPORT_TYPE_ARM;
		list[at++] = CL_IMPORT_TYPE_DMA_BUF_ARM;
	}
	if (count)
		memcpy(list + at, properties, 2 * count * sizeof(*list));
	return list;
}

static cl_mem climport_cl_create(cl_context context, cl_mem_flags flags,
				 const cl_import_properties_arm *properties,
				 const struct climport_dmabuf *dmabuf, cl_int *err)
{
	int fd = dmabuf->fd;
	cl_mem mem;
	size_t size;

	if (!dmabuf->size || __builtin_add_overflow(dmabuf->offset, dmabuf->size, &size)) {
		log_error("dmabuf->size %zu at offset %zu is empty or overflows", dmabuf->size,
			  dmabuf->offset);
		*err = CL_INVALID_BUFFER_SIZE;
		return NULL;
	}
	mem = climport_cl_import(context, flags, properties, &fd, size, err);
	return mem && dmabuf->offset ? climport_cl_part_of(mem, dmabuf, err) : mem;
}

PUBLIC cl_mem climport_create_buffer(cl_context context, cl_mem_flags flags,
				     const cl_import_properties_arm *properties,
				     const struct climport_dmabuf *dmabuf, cl_int *errcode_ret)
{
	cl_import_properties_arm *list;
	cl_int err = CL_SUCCESS;
	cl_mem mem = NULL;

	climport_error_begin();
	list = climport_cl_properties(properties, &err);
	if (list)
		mem = climport_cl_create(context, flags, list, dmabuf, &err);
	free(list);
	return climport_cl_end(mem, err, errcode_ret);
}

PUBLIC void CL_CALLBACK climport_mark_destroyed(cl_mem memory, void *mark)
{
	(void)memory;
	__atomic_store_n((uint32_t *)mark, 1, __ATOMIC_RELEASE);
}
