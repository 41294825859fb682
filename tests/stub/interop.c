/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of GL and EGL, and pipes.  Each object is plain memory, enough to see how a layer treats
 * the handle.
 */
#include "internal.h"

static cl_mem interop_create(cl_int err, cl_context handle, cl_mem_object_type type,
			     cl_mem_flags flags, cl_int *errcode_ret)
{
	struct context *context = object_get(handle, STUB_CONTEXT);

	if (!err && !context)
		err = CL_INVALID_CONTEXT;
	if (err)
		return creation_failed(errcode_ret, err);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_mem)mem_create(context, type, flags, 4096, NULL);
}

cl_mem CL_API_CALL stub_clCreateFromGLBuffer(cl_context handle, cl_mem_flags flags,
					     cl_GLuint object, cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateFromGLBuffer, U(handle), U(flags), U(object));

	return interop_create(err, handle, CL_MEM_OBJECT_BUFFER, flags, errcode_ret);
}

cl_mem CL_API_CALL stub_clCreateFromGLTexture2D(cl_context handle, cl_mem_flags flags,
						cl_GLenum target, cl_GLint level, cl_GLuint object,
						cl_int *errcode_ret)
{
	cl_int err =
		CALL(clCreateFromGLTexture2D, U(handle), U(flags), U(target), U(level), U(object));

	return interop_create(err, handle, CL_MEM_OBJECT_IMAGE2D, flags, errcode_ret);
}

cl_mem CL_API_CALL stub_clCreateFromGLTexture3D(cl_context handle, cl_mem_flags flags,
						cl_GLenum target, cl_GLint level, cl_GLuint object,
						cl_int *errcode_ret)
{
	cl_int err =
		CALL(clCreateFromGLTexture3D, U(handle), U(flags), U(target), U(level), U(object));

	return interop_create(err, handle, CL_MEM_OBJECT_IMAGE3D, flags, errcode_ret);
}

cl_mem CL_API_CALL stub_clCreateFromGLTexture(cl_context handle, cl_mem_flags flags,
					      cl_GLenum target, cl_GLint level, cl_GLuint object,
					      cl_int *errcode_ret)
{
	cl_int err =
		CALL(clCreateFromGLTexture, U(handle), U(flags), U(target), U(level), U(object));

	return interop_create(err, handle, CL_MEM_OBJECT_IMAGE2D, flags, errcode_ret);
}

cl_mem CL_API_CALL stub_clCreateFromGLRenderbuffer(cl_context handle, cl_mem_flags flags,
						   cl_GLuint object, cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateFromGLRenderbuffer, U(handle), U(flags), U(object));

	return interop_create(err, handle, CL_MEM_OBJECT_IMAGE2D, flags, errcode_ret);
}

cl_mem CL_API_CALL stub_clCreateFromEGLImageKHR(cl_context handle, CLeglDisplayKHR display,
						CLeglImageKHR image, cl_mem_flags flags,
						const cl_egl_image_properties_khr *properties,
						cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateFromEGLImageKHR, U(handle), U(display), U(image), U(flags),
			  U(properties));

	return interop_create(err, handle, CL_MEM_OBJECT_IMAGE2D, flags, errcode_ret);
}

cl_mem CL_API_CALL stub_clCreatePipe(cl_context handle, cl_mem_flags flags, cl_uint packet_size,
				     cl_uint max_packets, const cl_pipe_properties *properties,
				     cl_int *errcode_ret)
{
	cl_int err = CALL(clCreatePipe, U(handle), U(flags), U(packet_size), U(max_packets),
			  U(properties));

	return interop_create(err, handle, CL_MEM_OBJECT_PIPE, flags, errcode_ret);
}

/* A driver's own import.  Only host memory is imported, and the arguments are recorded. */
static cl_import_properties_arm native_property(const cl_import_properties_arm *properties,
						cl_import_properties_arm name,
						cl_import_properties_arm missing)
{
	for (; properties && *properties; properties += 2)
		if (*properties == name)
			return properties[1];
	return missing;
}

/* A property needs its extension.  Protected memory is in dma-bufs, and the host has no access. */
static cl_int native_check(cl_import_properties_arm type, bool is_protected, cl_mem_flags flags)
{
	const long has = stub_get(STUB_NATIVE_TYPES);
	const bool is_dma_buf = type == CL_IMPORT_TYPE_DMA_BUF_ARM,
		   is_host = type == CL_IMPORT_TYPE_HOST_ARM;

	if (!(has & (is_dma_buf ? STUB_NATIVE_DMA_BUF
		     : is_host	? STUB_NATIVE_HOST
				: STUB_NATIVE_ANDROID)))
		return CL_INVALID_PROPERTY;
	if (is_protected && (!is_dma_buf || !(has & STUB_NATIVE_PROTECTED)))
		return CL_INVALID_PROPERTY;
	if (is_protected && flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY))
		return CL_INVALID_OPERATION;
	return CL_SUCCESS;
}

cl_mem CL_API_CALL stub_clImportMemoryARM(cl_context handle, cl_mem_flags flags,
					  const cl_import_properties_arm *properties, void *memory,
					  size_t size, cl_int *errcode_ret)
{
	const cl_import_properties_arm type =
		native_property(properties, CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM);
	cl_int err =
		CALL(clImportMemoryARM, U(handle), U(flags), U(properties), U(memory), U(size));

	if (!err)
		err = native_check(
			type, native_property(properties, CL_IMPORT_TYPE_PROTECTED_ARM, CL_FALSE),
			flags);
	if (!err && !memory)
		err = CL_INVALID_VALUE;
	if (err)
		return creation_failed(errcode_ret, err);
	flags &= ~(cl_mem_flags)CL_MEM_USE_HOST_PTR;
	if (type != CL_IMPORT_TYPE_HOST_ARM)
		return mem_buffer(handle, flags, size, NULL, NULL, errcode_ret);
	return mem_buffer(handle, flags | CL_MEM_USE_HOST_PTR, size, memory, NULL, errcode_ret);
}

struct sampler {
	struct object base;
	struct context *context;
};

cl_sampler CL_API_CALL stub_clCreateSampler(cl_context handle, cl_bool normalized,
					    cl_addressing_mode addressing, cl_filter_mode filter,
					    cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateSampler, U(handle), U(normalized), U(addressing), U(filter));
	struct sampler *sampler;

	if (!err && !object_get(handle, STUB_CONTEXT))
		err = CL_INVALID_CONTEXT;
	if (err)
		return creation_failed(errcode_ret, err);
	sampler = object_create(STUB_SAMPLER);
	sampler->context = object_get(handle, STUB_CONTEXT);
	object_retain(sampler->context);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_sampler)sampler;
}

cl_int CL_API_CALL stub_clRetainSampler(cl_sampler handle)
{
	CALL(clRetainSampler, U(handle));
	if (!object_get(handle, STUB_SAMPLER))
		return CL_INVALID_SAMPLER;
	object_retain(handle);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clReleaseSampler(cl_sampler handle)
{
	struct sampler *sampler = object_get(handle, STUB_SAMPLER);

	CALL(clReleaseSampler, U(handle));
	if (!sampler)
		return CL_INVALID_SAMPLER;
	if (!object_release(sampler))
		return CL_SUCCESS;
	stub_context_put(sampler->context);
	object_destroy(sampler);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clGetSamplerInfo(cl_sampler handle, cl_sampler_info name, size_t room,
					 void *out, size_t *size_ret)
{
	struct sampler *sampler = object_get(handle, STUB_SAMPLER);
	cl_int err = CALL(clGetSamplerInfo, U(handle), U(name), U(room), U(out), U(size_ret));

	if (err)
		return err;
	if (!sampler)
		return CL_INVALID_SAMPLER;
	return name == CL_SAMPLER_CONTEXT
		       ? info_put(&sampler->context, sizeof(void *), room, out, size_ret)
		       : CL_INVALID_VALUE;
}
