/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_external_memory_dma_buf, where the driver lacks it: buffers and 2D images of a dma-buf.
 *
 * Such an object is an import (import_create.h) that the program acquires and releases itself (external.c), so its
 * commands get no bracket, and none of them is forbidden.
 *
 * "importing memory from a file descriptor transfers ownership of the file descriptor": programs close the descriptor all
 * the same (OpenCV), and to close one twice may close another file.  So an import duplicates it, and the number stays the
 * program's.
 */
#include "icd/calls/external_memory.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "icd/calls/derive.h"
#include "icd/calls/import_create.h"
#include "icd/calls/properties.h"
#include "icd/driver_info.h"
#include "icd/image_format.h"
#include "icd/intercept.h"
#include "icd/objects/memobj.h"
#include "icd/objects/method.h"
#include "util/cl_names.h"
#include "util/log.h"
#include "util/thread.h"

#define HOST_PTR_FLAGS (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)

/* The property behind @p, whose value is one word or a list of devices. */
static const cl_mem_properties *property_next(const cl_mem_properties *p)
{
	if (*p++ == CL_MEM_DEVICE_HANDLE_LIST_KHR)
		while (*p)
			p++;
	return p + 1;
}

/* The value of a property, or NULL. */
static const cl_mem_properties *property_find(const cl_mem_properties *properties,
					      cl_mem_properties name)
{
	for (const cl_mem_properties *p = properties; p && *p; p = property_next(p))
		if (*p == name)
			return p + 1;
	return NULL;
}

/*
 * Whether the list has CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR, or devices for nothing, which drivers without the
 * extension may take.  @properties: or NULL.
 */
static bool external_is_ours(const cl_mem_properties *properties)
{
	const cl_mem_properties *devices = external_devices(properties);

	return property_find(properties, CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR) ||
	       (devices && devices == properties + 1 && !*property_next(properties));
}

const cl_mem_properties *external_devices(const cl_mem_properties *properties)
{
	return property_find(properties, CL_MEM_DEVICE_HANDLE_LIST_KHR);
}

size_t external_length(const cl_mem_properties *properties)
{
	const cl_mem_properties *p = properties;

	while (*p)
		p = property_next(p);
	return (size_t)(p - properties) + 1;
}

static cl_int external_check_property(const cl_mem_properties *properties,
				      const cl_mem_properties *p)
{
	for (const cl_mem_properties *q = properties; q < p; q = property_next(q)) {
		if (*q != *p)
			continue;
		log_error("%s is given twice", cl_import_name((intptr_t)*p));
		return CL_INVALID_PROPERTY;
	}
	switch (*p) {
	case CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR:
		if (p[1] <= INT_MAX)
			return CL_SUCCESS;
		log_error("the dma-buf's descriptor is %lld", (long long)p[1]);
		return CL_INVALID_PROPERTY;
	case CL_MEM_DEVICE_HANDLE_LIST_KHR:
		if (p[1])
			return CL_SUCCESS;
		log_error("CL_MEM_DEVICE_HANDLE_LIST_KHR has no device");
		return CL_INVALID_PROPERTY;
	}
	log_error("%s is no property of a memory object that is made of a dma-buf",
		  cl_import_name((intptr_t)*p));
	return CL_INVALID_PROPERTY;
}

static cl_int external_check_devices(const struct context *context, const cl_mem_properties *listed)
{
	const cl_device_id *devices;
	const size_t count = context_devices(context, &devices);
	size_t i;

	for (; listed && *listed; listed++) {
		for (i = 0; i < count && devices[i] != (cl_device_id)(uintptr_t)*listed; i++)
			;
		if (i < count)
			continue;
		log_error("CL_MEM_DEVICE_HANDLE_LIST_KHR names a device that the context does not "
			  "have");
		return CL_INVALID_DEVICE;
	}
	return CL_SUCCESS;
}

static cl_int external_check(const struct context *context, const struct image_request *r)
{
	for (const cl_mem_properties *p = r->properties; *p; p = property_next(p)) {
		cl_int err = external_check_property(r->properties, p);

		if (err)
			return err;
	}
	if (!property_find(r->properties, CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR)) {
		log_error("CL_MEM_DEVICE_HANDLE_LIST_KHR is given without memory to import");
		return CL_INVALID_PROPERTY;
	}
	if (r->flags & HOST_PTR_FLAGS) {
		log_error("an object that is made of a dma-buf cannot have the flags %s",
			  cl_mem_flags_names(r->flags & HOST_PTR_FLAGS));
		return CL_INVALID_VALUE;
	}
	if (r->host_ptr) {
		log_error("host_ptr is not NULL: the memory is the dma-buf's");
		return CL_INVALID_HOST_PTR;
	}
	return external_check_devices(context, external_devices(r->properties));
}

/* Whether the driver imports dma-bufs by the same functions, with its own rules. */
static bool external_has_driver(const struct context *context)
{
	const cl_device_id *devices;
	const size_t count = context_devices(context, &devices);

	for (size_t i = 0; i < count; i++)
		if (driver_imports(devices[i], CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR))
			return true;
	return false;
}

/* An error in the terms of this extension: "if the value specified for a supported property name is not valid". */
static cl_int external_error(cl_int err, bool is_image)
{
	if (err == CL_INVALID_VALUE)
		return CL_INVALID_PROPERTY;
	return is_image && err == CL_INVALID_BUFFER_SIZE ? CL_INVALID_IMAGE_SIZE : err;
}

/* The buffer over @size bytes; @properties: of the buffer, or NULL if it is an image's. */
static cl_mem external_create_buffer(const struct context_import *how,
				     const struct image_request *r, size_t size,
				     cl_mem_properties *properties, cl_int *err)
{
	struct import_request request = { .function = r->function,
					  .context = r->context,
					  .type = IMPORT_DMABUF,
					  .size = size,
					  .external = true,
					  .properties = properties };
	cl_mem mem;
	int fd;

	*err = flags_parse(r->flags, &request.flags);
	if (*err)
		return NULL;
	fd = (int)*property_find(r->properties, CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR);
	request.memory = &fd;
	mem = import_create(how, &request, err);
	*err = external_error(*err, r->desc);
	return mem;
}

/* The bytes that an image needs; 0: an error, logged. */
static size_t external_image_size(const cl_image_desc *desc, const cl_image_format *format,
				  size_t *row_pitch, cl_int *err)
{
	const size_t element = format ? image_format_element(format) : 0;

	*err = CL_INVALID_IMAGE_DESCRIPTOR;
	if (desc->image_type != CL_MEM_OBJECT_IMAGE2D || desc->mem_object || desc->num_mip_levels ||
	    desc->num_samples) {
		log_error("an image that is made of a dma-buf is a CL_MEM_OBJECT_IMAGE2D without "
			  "another memory object, mipmaps and samples");
		return 0;
	}
	*err = format ? CL_IMAGE_FORMAT_NOT_SUPPORTED : CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
	if (!element) {
		log_error("the size of a pixel of this image format is unknown");
		return 0;
	}
	*err = CL_INVALID_IMAGE_SIZE;
	*row_pitch = desc->image_row_pitch;
	if (!*row_pitch && desc->image_width <= PTRDIFF_MAX / element)
		*row_pitch = desc->image_width * element;
	if (desc->image_width && desc->image_height && *row_pitch &&
	    *row_pitch <= PTRDIFF_MAX / desc->image_height) {
		*err = CL_SUCCESS;
		return *row_pitch * desc->image_height;
	}
	log_error("an image of %zu x %zu pixels with rows of %zu bytes has no size",
		  desc->image_width, desc->image_height, *row_pitch);
	return 0;
}

/* The image holds the buffer beneath it, which the program never sees. */
static cl_mem external_create_image(const struct context_import *how, const struct image_request *r,
				    cl_mem_properties *properties, cl_int *err)
{
	cl_image_desc desc = *r->desc;
	struct image_request image = { .function = r->function,
				       .context = r->context,
				       .flags = r->flags,
				       .format = r->format,
				       .desc = &desc };
	const size_t size = external_image_size(r->desc, r->format, &desc.image_row_pitch, err);
	struct memobj *buffer;
	cl_mem mem;

	if (!size)
		return NULL;
	desc.mem_object = external_create_buffer(how, r, size, NULL, err);
	if (!desc.mem_object)
		return NULL;
	buffer = memobj_get(desc.mem_object);
	mem = derive_image(how->context, &image, buffer, properties, err);
	memobj_put(buffer);
	layer_clReleaseMemObject(desc.mem_object);
	return created_or_null(mem, err);
}

static cl_mem external_create(const struct context_import *how, const struct image_request *r,
			      size_t size, cl_int *err)
{
	const size_t length = external_length(r->properties) * sizeof(*r->properties);
	cl_mem_properties *properties = malloc(length);
	cl_mem mem;

	if (!properties) {
		log_error("no memory for the properties of a memory object");
		*err = CL_OUT_OF_HOST_MEMORY;
		return NULL;
	}
	memcpy(properties, r->properties, length);
	mem = r->desc ? external_create_image(how, r, properties, err)
		      : external_create_buffer(how, r, size, properties, err);
	if (!mem)
		free(properties);
	return mem;
}

/*
 * An object of @r->properties, external_is_ours(): an image, or without r->desc a buffer of @size bytes.
 * False: the driver has the extension, or the context is none of the layer's, so the driver gets the call.  Else *mem, or
 * NULL and *err, which is logged and told to the context's callback.
 */
static bool external_make(const struct image_request *r, size_t size, cl_mem *mem, cl_int *err)
{
	THREAD_NO_CANCEL();
	struct context *context = context_get(r->context);
	const bool is_drivers = !context || external_has_driver(context);
	const cl_mem_properties *listed;
	struct context_import how;

	if (!is_drivers)
		context_find_import(context, IMPORT_DMABUF, &how);
	if (is_drivers || (how.ops && !how.ops->create)) {
		context_put(context);
		return false;
	}
	*mem = NULL;
	log_clear();
	*err = external_check(context, r);
	listed = external_devices(r->properties);
	if (!*err && !how.ops && listed)
		context_find_import_on(context, IMPORT_DMABUF, listed, &how);
	if (!*err && !how.ops && context_refuse(&how, IMPORT_DMABUF) == CL_OUT_OF_RESOURCES)
		*err = CL_OUT_OF_RESOURCES;
	else if (!*err && !how.ops)
		*err = CL_INVALID_DEVICE;
	else if (!*err && !r->desc)
		*err = size_check(size);
	if (!*err)
		*mem = external_create(&how, r, size, err);
	context_put(context);
	if (*err)
		context_notify(r->context, r->function, *err);
	return true;
}

cl_mem CL_API_CALL layer_clCreateBufferWithProperties(cl_context context,
						      const cl_mem_properties *properties,
						      cl_mem_flags flags, size_t size,
						      void *host_ptr, cl_int *errcode_ret)
{
	const struct image_request r = { .function = "clCreateBufferWithProperties",
					 .context = context,
					 .properties = properties,
					 .flags = flags,
					 .host_ptr = host_ptr };
	cl_int err;
	cl_mem mem;

	if (!external_is_ours(properties) || !external_make(&r, size, &mem, &err))
		return next.clCreateBufferWithProperties(context, properties, flags, size, host_ptr,
							 errcode_ret);
	if (errcode_ret)
		*errcode_ret = err;
	return mem;
}

cl_mem CL_API_CALL layer_clCreateImageWithProperties(cl_context context,
						     const cl_mem_properties *properties,
						     cl_mem_flags flags,
						     const cl_image_format *format,
						     const cl_image_desc *desc, void *host_ptr,
						     cl_int *errcode_ret)
{
	struct image_request r = { "clCreateImageWithProperties",
				   true,
				   context,
				   properties,
				   flags,
				   format,
				   desc,
				   host_ptr };
	cl_int err;
	cl_mem mem;

	if (!desc || !external_is_ours(properties) || !external_make(&r, 0, &mem, &err))
		return derive_image_of_request(&r, errcode_ret);
	if (errcode_ret)
		*errcode_ret = err;
	return mem;
}
