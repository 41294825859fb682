/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong answers: the rows QUERY of rows.h, and events. */
#include "mutants.h"

#include <string.h>
#include <unistd.h>

enum answer {
	ZERO,
	ONE,
	PLUS_ONE,
	ITSELF,
	ROOT,
	MEMORY,
	WHOLE_PAGES,
	WHOLE_WORDS,
	IN_PAGE,
	OF_PARENT,
	AS_PASSED,
	AS_READ_WRITE,
	AS_BUFFER,
	WITH_USE_HOST_PTR,
	NO_HOST_FLAGS,
	NOT_EMPTY,
	NO_SIZE,
	TOO_SHORT,
	KNOWN,
	FAILS,
};

static const struct row {
	enum mutant mutant;
	unsigned int shapes, param;
	enum answer answer;
} rows[] = {
#define QUERY(name, version, where, says, shapes, param, answer) \
	{ MUTANT_##name, shapes, param, answer },
#include "rows.h"
};

typedef cl_int(CL_API_CALL *info_function)(cl_mem, cl_uint, size_t, void *, size_t *);

static const struct row *query_row(const struct mutant_object *object, cl_uint param)
{
	if (!object)
		return NULL;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].mutant == mutant && rows[i].shapes & object->shape &&
		    (rows[i].param == param || !rows[i].param))
			return &rows[i];
	return NULL;
}

static uint64_t query_round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/* The value of at most eight bytes that takes the place of @value. */
static uint64_t query_value(const struct row *row, struct mutant_object *object, uint64_t value)
{
	struct mutant_object *root = mutant_root(object);

	switch (row->answer) {
	case ZERO:
		return 0;
	case ONE:
		return 1;
	case PLUS_ONE:
		return value + 1;
	case ITSELF:
		return (uintptr_t)object->mem;
	case ROOT:
		return value ? (uintptr_t)root->mem : 0;
	case MEMORY:
		return (uintptr_t)root->memory + object->origin;
	case WHOLE_PAGES:
		return query_round_up(value, mutant_page());
	case WHOLE_WORDS:
		return query_round_up(value, 4);
	case IN_PAGE:
		return value + (uintptr_t)root->memory % mutant_page();
	case AS_PASSED:
		return object->flags;
	case AS_READ_WRITE:
		return CL_MEM_READ_WRITE;
	case AS_BUFFER:
		return CL_MEM_OBJECT_BUFFER;
	case WITH_USE_HOST_PTR:
		return value | CL_MEM_USE_HOST_PTR;
	case NO_HOST_FLAGS:
		return value & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY);
	default:
		return value;
	}
}

static cl_int query_bytes(const void *from, size_t have, size_t size, void *result,
			  size_t *size_ret)
{
	if (result && size < have)
		return CL_INVALID_VALUE;
	if (result)
		memcpy(result, from, have);
	if (size_ret)
		*size_ret = have;
	return CL_SUCCESS;
}

static cl_int query_not_empty(size_t size, void *result, size_t *size_ret)
{
	static const cl_mem_properties list[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 };

	return query_bytes(list, sizeof(list), size, result, size_ret);
}

static cl_int query_short(info_function next, struct mutant_object *object, cl_uint param,
			  size_t size, void *result, size_t *size_ret)
{
	uint64_t value = 0;
	cl_int error = next(object->mem, param, sizeof(value), &value, size_ret);

	if (!error && result)
		memcpy(result, &value, size < sizeof(value) ? size : sizeof(value));
	return error;
}

static cl_int query_other(const struct row *row, info_function next, struct mutant_object *object,
			  cl_uint param, size_t size, void *result, size_t *size_ret)
{
	struct mutant_object *parent = object->parent;
	cl_int error;

	switch (row->answer) {
	case NOT_EMPTY:
		return query_not_empty(size, result, size_ret);
	case NO_SIZE:
		return next(object->mem, param, size, result, NULL);
	case TOO_SHORT:
		return query_short(next, object, param, size, result, size_ret);
	case FAILS:
		return CL_INVALID_VALUE;
	case OF_PARENT:
		return next(parent ? parent->mem : object->mem, param, size, result, size_ret);
	default:
		error = next(object->mem, param, size, result, size_ret);
		return error == CL_INVALID_VALUE ? CL_SUCCESS : error;
	}
}

/* Of a dma-buf: see the rows of the guest. */
static void query_dma_buf(struct mutant_object *object, cl_uint param, void *result)
{
	if (!object || !object->is_dma_buf || !result || object->shape != SHAPE_IMPORT)
		return;
	if (MUTANT(dma_buf_read_only_as_read_write) && param == CL_MEM_FLAGS)
		*(cl_mem_flags *)result = CL_MEM_READ_WRITE;
	if (MUTANT(dma_buf_size_of_all) && param == CL_MEM_SIZE)
		*(size_t *)result = (size_t)lseek(object->fd, 0, SEEK_END);
}

static cl_int query_query(info_function next, cl_mem mem, cl_uint param, size_t size, void *result,
			  size_t *size_ret)
{
	struct mutant_object *object = mutant_find(mem);
	const struct row *row = query_row(object, param);
	size_t have = 0;
	uint64_t value = 0;
	cl_int error;

	if (row && (row->answer >= NOT_EMPTY || row->answer == OF_PARENT))
		return query_other(row, next, object, param, size, result, size_ret);
	error = next(mem, param, size, result, &have);
	if (size_ret && !error)
		*size_ret = have;
	if (!error)
		query_dma_buf(object, param, result);
	if (error || !row || !result || have > sizeof(value))
		return error;
	memcpy(&value, result, have);
	value = query_value(row, object, value);
	memcpy(result, &value, have);
	return CL_SUCCESS;
}

static cl_int CL_API_CALL mutant_clGetMemObjectInfo(cl_mem mem, cl_mem_info param, size_t size,
						    void *result, size_t *size_ret)
{
	return query_query(mutant_next.clGetMemObjectInfo, mem, param, size, result, size_ret);
}

static cl_int CL_API_CALL mutant_clGetImageInfo(cl_mem mem, cl_image_info param, size_t size,
						void *result, size_t *size_ret)
{
	static const size_t nothing;
	struct mutant_object *object = mutant_find(mem);

	if (MUTANT(query_image_of_import) && object && object->shape == SHAPE_IMPORT)
		return query_bytes(&nothing, sizeof(nothing), size, result, size_ret);
	return query_query(mutant_next.clGetImageInfo, mem, param, size, result, size_ret);
}

static cl_int CL_API_CALL mutant_clGetSupportedImageFormats(cl_context context, cl_mem_flags flags,
							    cl_mem_object_type type, cl_uint room,
							    cl_image_format *formats,
							    cl_uint *count)
{
	cl_int error =
		mutant_next.clGetSupportedImageFormats(context, flags, type, room, formats, count);

	if (MUTANT(query_supported_formats) && mutant_count_live() && count)
		*count = 0;
	return error;
}

static void query_event_change(cl_event_info param, void *result)
{
	cl_uint *value = result;

	if (param == CL_EVENT_COMMAND_TYPE && MUTANT(event_type_of_kernels_wrong))
		*value = CL_COMMAND_MARKER;
	if (param == CL_EVENT_COMMAND_TYPE && MUTANT(event_type_wrong) &&
	    *value != CL_COMMAND_MARKER)
		*value = CL_COMMAND_NDRANGE_KERNEL;
	if (param == CL_EVENT_COMMAND_QUEUE && MUTANT(event_queue_null))
		*(cl_command_queue *)result = NULL;
	if (param == CL_EVENT_CONTEXT && MUTANT(event_context_null))
		*(cl_context *)result = NULL;
	if (param == CL_EVENT_COMMAND_EXECUTION_STATUS && MUTANT(event_never_submitted))
		*value = CL_QUEUED;
}

static cl_int CL_API_CALL mutant_clGetEventInfo(cl_event event, cl_event_info param, size_t size,
						void *result, size_t *size_ret)
{
	cl_int error = mutant_next.clGetEventInfo(event, param, size, result, size_ret);

	if (!error && result && mutant_has_event(event))
		query_event_change(param, result);
	return error;
}

static cl_int CL_API_CALL mutant_clGetEventProfilingInfo(cl_event event, cl_profiling_info param,
							 size_t size, void *result,
							 size_t *size_ret)
{
	if (MUTANT(event_profiling_refused) && mutant_has_event(event))
		return CL_PROFILING_INFO_NOT_AVAILABLE;
	return mutant_next.clGetEventProfilingInfo(event, param, size, result, size_ret);
}

void mutant_offer_query(struct _cl_icd_dispatch *offered)
{
	MUTANT_OFFER(offered, clGetMemObjectInfo);
	MUTANT_OFFER(offered, clGetImageInfo);
	MUTANT_OFFER(offered, clGetSupportedImageFormats);
	MUTANT_OFFER(offered, clGetEventInfo);
	MUTANT_OFFER(offered, clGetEventProfilingInfo);
}
