/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL layer that lets PoCL look like a discrete GPU of NVIDIA's, so that programs with real kernels
 * meet imports by opaque descriptors.  The fake of NVIDIA's resource manager (tests/fake) makes the
 * descriptors.  Below
 * climport's layer.
 *
 * As in NVIDIA's driver, a map of such a buffer gives no pointer of the program's: a program that gets
 * the pointer dies.  A migration of such a buffer ends the program.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include "fake/opaque.h"

#define EXPORT __attribute__((visibility("default")))
#define NAMES " cl_khr_external_memory cl_khr_external_memory_opaque_fd"

enum { ROOTS = 4096, MAPS = 4096, UUID_BYTE = 0xa0 };

static struct _cl_icd_dispatch next, offered;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the two tables */
static cl_mem roots[ROOTS];				 /* buffers of opaque descriptors */
static struct map {
	void *of_driver; /* NULL: a free row */
} maps[MAPS];
static char *no_memory; /* MAPS addresses that nobody can read */

static cl_int discrete_answer(const void *answer, size_t length, size_t size, void *value,
			      size_t *size_ret)
{
	if (value && size < length)
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, answer, length);
	if (size_ret)
		*size_ret = length;
	return CL_SUCCESS;
}

static cl_int discrete_extensions(cl_device_id device, size_t size, void *value, size_t *size_ret)
{
	char text[8192];
	cl_int err = next.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS,
					  sizeof(text) - sizeof(NAMES), text, NULL);

	if (err)
		return err;
	strcat(text, NAMES);
	return discrete_answer(text, strlen(text) + 1, size, value, size_ret);
}

static cl_int CL_API_CALL discrete_clGetDeviceInfo(cl_device_id device, cl_device_info name,
						   size_t size, void *value, size_t *size_ret)
{
	const cl_bool is_unified = CL_FALSE;
	unsigned char uuid[16];

	switch (name) {
	case CL_DEVICE_EXTENSIONS:
		return discrete_extensions(device, size, value, size_ret);
	case CL_DEVICE_HOST_UNIFIED_MEMORY:
		return discrete_answer(&is_unified, sizeof(is_unified), size, value, size_ret);
	case CL_DEVICE_UUID_KHR:
		memset(uuid, UUID_BYTE, sizeof(uuid));
		return discrete_answer(uuid, sizeof(uuid), size, value, size_ret);
	}
	return next.clGetDeviceInfo(device, name, size, value, size_ret);
}

/* Puts @to in the place of @from. */
static void discrete_replace_root(cl_mem from, cl_mem to)
{
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < ROOTS && roots[i] != from)
		i++;
	if (i < ROOTS)
		roots[i] = to;
	pthread_mutex_unlock(&lock);
	if (i == ROOTS)
		abort();
}

static void CL_CALLBACK discrete_destroyed(cl_mem mem, void *unused)
{
	(void)unused;
	discrete_replace_root(mem, NULL);
}

static bool discrete_is_opaque(cl_mem mem)
{
	cl_mem parent = NULL;
	bool found = false;

	next.clGetMemObjectInfo(mem, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent, NULL);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < ROOTS && !found; i++)
		found = roots[i] && roots[i] == (parent ? parent : mem);
	pthread_mutex_unlock(&lock);
	return found;
}

static cl_mem discrete_import(cl_context context, int fd, cl_mem_flags flags, size_t size,
			      cl_int *errcode_ret)
{
	struct fake_opaque opaque;
	cl_mem mem;

	if (!fake_opaque_read(fd, &opaque) || size > opaque.size) {
		if (errcode_ret)
			*errcode_ret = CL_INVALID_VALUE;
		return NULL;
	}
	mem = next.clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, size, opaque.memory,
				  errcode_ret);
	if (!mem)
		return NULL;
	close(fd);
	discrete_replace_root(NULL, mem);
	next.clSetMemObjectDestructorCallback(mem, discrete_destroyed, NULL);
	return mem;
}

static cl_mem CL_API_CALL discrete_clCreateBufferWithProperties(cl_context context,
								const cl_mem_properties *properties,
								cl_mem_flags flags, size_t size,
								void *host_ptr, cl_int *errcode_ret)
{
	if (properties && properties[0] == CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR)
		return discrete_import(context, (int)properties[1], flags, size, errcode_ret);
	return next.clCreateBufferWithProperties(context, properties, flags, size, host_ptr,
						 errcode_ret);
}

/* An address that stands for the driver's pointer. */
static void *discrete_hide(void *of_driver)
{
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < MAPS && maps[i].of_driver)
		i++;
	if (i == MAPS)
		abort();
	maps[i].of_driver = of_driver;
	pthread_mutex_unlock(&lock);
	return no_memory + i;
}

static void *discrete_show(const void *hidden)
{
	const size_t i = (size_t)((const char *)hidden - no_memory);
	void *of_driver = NULL;

	pthread_mutex_lock(&lock);
	if (i < MAPS) {
		of_driver = maps[i].of_driver;
		maps[i].of_driver = NULL;
	}
	pthread_mutex_unlock(&lock);
	return of_driver;
}

static void *CL_API_CALL discrete_clEnqueueMapBuffer(cl_command_queue queue, cl_mem mem,
						     cl_bool blocking, cl_map_flags flags,
						     size_t offset, size_t size, cl_uint num,
						     const cl_event *list, cl_event *event,
						     cl_int *errcode_ret)
{
	void *pointer = next.clEnqueueMapBuffer(queue, mem, blocking, flags, offset, size, num,
						list, event, errcode_ret);

	return pointer && discrete_is_opaque(mem) ? discrete_hide(pointer) : pointer;
}

static cl_int CL_API_CALL discrete_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem,
							   void *pointer, cl_uint num,
							   const cl_event *list, cl_event *event)
{
	if (discrete_is_opaque(mem))
		pointer = discrete_show(pointer);
	if (!pointer)
		return CL_INVALID_VALUE;
	return next.clEnqueueUnmapMemObject(queue, mem, pointer, num, list, event);
}

static cl_int CL_API_CALL discrete_clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count,
							      const cl_mem *mems,
							      cl_mem_migration_flags flags,
							      cl_uint num, const cl_event *list,
							      cl_event *event)
{
	for (cl_uint i = 0; i < count; i++)
		if (discrete_is_opaque(mems[i]))
			abort();
	return next.clEnqueueMigrateMemObjects(queue, count, mems, flags, num, list, event);
}

EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
					 size_t *size_ret)
{
	const cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	if (name != CL_LAYER_API_VERSION)
		return CL_INVALID_VALUE;
	return discrete_answer(&version, sizeof(version), size, value, size_ret);
}

EXPORT cl_int CL_API_CALL clInitLayer(cl_uint entries, const struct _cl_icd_dispatch *target,
				      cl_uint *entries_ret,
				      const struct _cl_icd_dispatch **dispatch)
{
	const size_t size = entries * sizeof(void *);

	no_memory = mmap(NULL, MAPS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (no_memory == MAP_FAILED)
		return CL_OUT_OF_HOST_MEMORY;
	memcpy(&next, target, size < sizeof(next) ? size : sizeof(next));
	offered.clGetDeviceInfo = discrete_clGetDeviceInfo;
	offered.clCreateBufferWithProperties = discrete_clCreateBufferWithProperties;
	offered.clEnqueueMapBuffer = discrete_clEnqueueMapBuffer;
	offered.clEnqueueUnmapMemObject = discrete_clEnqueueUnmapMemObject;
	offered.clEnqueueMigrateMemObjects = discrete_clEnqueueMigrateMemObjects;
	*entries_ret = entries;
	*dispatch = &offered;
	return CL_SUCCESS;
}
