/* SPDX-License-Identifier: Apache-2.0 */
/* References to memory objects, and questions about them. */
#include "icd/access/queue_bracket.h"
#include "icd/calls/external_memory.h"
#include "icd/info_answer.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/objects/memobj.h"
#include "icd/objects/memobj_watch.h"
#include "util/thread.h"

static APART cl_int mem_object_retain(cl_mem mem)
{
	cl_int err = next.clRetainMemObject(mem);

	if (!err)
		memobj_retain(mem);
	return err;
}

cl_int CL_API_CALL layer_clRetainMemObject(cl_mem mem)
{
	return memobj_live() ? mem_object_retain(mem) : next.clRetainMemObject(mem);
}

/*
 * import_released() comes first: a destructor callback of the application, in the driver's release, may import the
 * same pages.  memobj_put() comes last: it releases the backing buffer.
 */
static APART cl_int mem_object_release(cl_mem mem)
{
	const struct memobj *import;
	struct memobj *gone;
	cl_int err;

	if (!memobj_is_known(mem))
		return next.clReleaseMemObject(mem);
	THREAD_NO_CANCEL();
	gone = memobj_release(mem, &import);
	if (gone && import_needs_bracket(gone->region))
		queue_bracket_close_all(gone->region);
	if (import)
		import_released(import->region);
	err = gone || import ? memobj_watch_release(mem) : next.clReleaseMemObject(mem);
	memobj_put(gone);
	return err;
}

cl_int CL_API_CALL layer_clReleaseMemObject(cl_mem mem)
{
	return memobj_live() ? mem_object_release(mem) : next.clReleaseMemObject(mem);
}

static const cl_mem *mem_object_parent(const struct memobj *obj)
{
	static const cl_mem none;

	return obj->parent && !obj->properties ? &obj->parent->handle : &none;
}

/* "Return 0 if memobj is not a sub-buffer object": an image on a sub-buffer has the place as well. */
static size_t mem_object_offset(const struct memobj *obj)
{
	cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;

	next.clGetMemObjectInfo(obj->handle, CL_MEM_TYPE, sizeof(type), &type, NULL);
	return type == CL_MEM_OBJECT_BUFFER ? obj->origin : 0;
}

/* An answer does not show how the import was built: no CL_MEM_USE_HOST_PTR, no host pointer. */
static cl_int mem_object_info(const struct memobj *obj, cl_mem_info name, size_t size, void *value,
			      size_t *size_ret)
{
	const cl_bool no = CL_FALSE;
	void *const no_pointer = NULL;
	cl_mem_flags flags;
	size_t offset;
	cl_int err;

	switch (name) {
	case CL_MEM_FLAGS:
		err = next.clGetMemObjectInfo(obj->handle, name, sizeof(flags), &flags, NULL);
		flags &= ~(cl_mem_flags)CL_MEM_USE_HOST_PTR;
		return err ? err : info_answer(&flags, sizeof(flags), size, value, size_ret);
	case CL_MEM_HOST_PTR:
		return info_answer(&no_pointer, sizeof(no_pointer), size, value, size_ret);
	case CL_MEM_USES_SVM_POINTER:
		return info_answer(&no, sizeof(no), size, value, size_ret);
	case CL_MEM_PROPERTIES:
		if (obj->properties)
			return info_answer(obj->properties,
					   external_length(obj->properties) *
						   sizeof(cl_mem_properties),
					   size, value, size_ret);
		return info_answer(NULL, 0, size, NULL, size_ret);
	case CL_MEM_ASSOCIATED_MEMOBJECT:
		if (obj->hides_parent || obj->backing || obj->properties)
			return info_answer(mem_object_parent(obj), sizeof(cl_mem), size, value,
					   size_ret);
		break;
	case CL_MEM_OFFSET:
		if (!memobj_import(obj)->backing)
			break;
		offset = mem_object_offset(obj);
		return info_answer(&offset, sizeof(offset), size, value, size_ret);
	}
	return next.clGetMemObjectInfo(obj->handle, name, size, value, size_ret);
}

static APART cl_int mem_object_get_info(cl_mem mem, cl_mem_info name, size_t size, void *value,
					size_t *size_ret)
{
	struct memobj *obj = memobj_get(mem);
	cl_int err;

	if (!obj)
		return next.clGetMemObjectInfo(mem, name, size, value, size_ret);
	err = mem_object_info(obj, name, size, value, size_ret);
	memobj_put(obj);
	return err;
}

cl_int CL_API_CALL layer_clGetMemObjectInfo(cl_mem mem, cl_mem_info name, size_t size, void *value,
					    size_t *size_ret)
{
	return memobj_live() ? mem_object_get_info(mem, name, size, value, size_ret)
			     : next.clGetMemObjectInfo(mem, name, size, value, size_ret);
}

cl_int CL_API_CALL layer_clGetImageInfo(cl_mem image, cl_image_info name, size_t size, void *value,
					size_t *size_ret)
{
	struct memobj *obj = name == CL_IMAGE_BUFFER && memobj_live() ? memobj_get(image) : NULL;
	cl_int err;

	if (!obj || !obj->parent || !(obj->hides_parent || obj->properties))
		err = next.clGetImageInfo(image, name, size, value, size_ret);
	else
		err = info_answer(mem_object_parent(obj), sizeof(cl_mem), size, value, size_ret);
	memobj_put(obj);
	return err;
}
