/* SPDX-License-Identifier: Apache-2.0 */
#include "command_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "import/lock.h"
#include "import/log.h"
#include "kernel.h"
#include "layer.h"
#include "table.h"

/* Lives as long as the application has references, which it counts itself. */
struct command_buffer {
	const struct command_functions *functions;
	cl_command_queue queue; /* the first one it was made for */
	unsigned int handles;
	size_t count;
	struct memobj **imports; /* bracketed ones that recorded commands use, held */
};

/* Platforms and command buffers; kernel_lock and memobj_lock may follow. */
LOCK_DEFINE(command_lock, LOCK_LAST);
static struct table platforms = TABLE_INIT; /* cl_platform_id -> struct command_functions */
static struct table buffers = TABLE_INIT;   /* cl_command_buffer_khr -> struct command_buffer */

static struct command_functions *functions_create(cl_platform_id platform)
{
	struct command_functions *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->platform = platform;
	const struct {
		const char *name;
		void **function;
	} names[] = {
		{ "clCreateCommandBufferKHR", &f->create },
		{ "clRetainCommandBufferKHR", &f->retain },
		{ "clReleaseCommandBufferKHR", &f->release },
		{ "clEnqueueCommandBufferKHR", &f->enqueue },
		{ "clRemapCommandBufferKHR", &f->remap },
		{ "clCommandNDRangeKernelKHR", &f->ndrange_kernel },
		{ "clCommandCopyBufferKHR", &f->copy_buffer },
		{ "clCommandCopyBufferRectKHR", &f->copy_buffer_rect },
		{ "clCommandCopyBufferToImageKHR", &f->copy_buffer_to_image },
		{ "clCommandCopyImageKHR", &f->copy_image },
		{ "clCommandCopyImageToBufferKHR", &f->copy_image_to_buffer },
		{ "clCommandFillBufferKHR", &f->fill_buffer },
		{ "clCommandFillImageKHR", &f->fill_image },
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		*names[i].function =
			next.clGetExtensionFunctionAddressForPlatform(platform, names[i].name);
	return f;
}

/* Two threads may ask a platform at once; the first to get here wins. */
static const struct command_functions *functions_publish(struct command_functions *f)
{
	struct command_functions *published;

	lock_acquire(&command_lock);
	published = table_get(&platforms, f->platform);
	if (!published && table_set(&platforms, f->platform, f))
		published = f;
	lock_release(&command_lock);
	if (published != f)
		free(f);
	return published;
}

static const struct command_functions *functions_of_queue(cl_command_queue queue)
{
	cl_platform_id platform;
	cl_device_id device;
	struct command_functions *f;

	if (next.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL) ||
	    next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL))
		return NULL;
	f = table_get(&platforms, platform);
	if (f || !next.clGetExtensionFunctionAddressForPlatform)
		return f;
	f = functions_create(platform);
	return f ? functions_publish(f) : NULL;
}

static bool buffer_add(cl_command_buffer_khr handle, const struct command_functions *functions,
		       cl_command_queue queue)
{
	struct command_buffer *b = malloc(sizeof(*b));
	bool added;

	if (!b)
		return false;
	*b = (struct command_buffer){ .functions = functions, .queue = queue, .handles = 1 };
	lock_acquire(&command_lock);
	added = table_set(&buffers, handle, b);
	lock_release(&command_lock);
	if (!added)
		free(b);
	return added;
}

const struct command_functions *command_functions_of(cl_command_buffer_khr handle)
{
	const struct command_functions *functions = NULL;
	struct command_buffer *b;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	if (b)
		functions = b->functions;
	lock_release(&command_lock);
	return functions;
}

/* @handle is an object of the driver, not yet one of the application. */
static cl_command_buffer_khr keep(cl_command_buffer_khr handle,
				  const struct command_functions *functions, cl_command_queue queue,
				  cl_int *errcode_ret)
{
	cl_int(CL_API_CALL * release)(cl_command_buffer_khr) = functions->release;

	if (!handle || buffer_add(handle, functions, queue))
		return handle;
	release(handle);
	if (errcode_ret)
		*errcode_ret = CL_OUT_OF_HOST_MEMORY;
	return NULL;
}

static cl_command_buffer_khr CL_API_CALL create(cl_uint num_queues, const cl_command_queue *queues,
						const cl_command_buffer_properties_khr *properties,
						cl_int *errcode_ret)
{
	cl_command_queue first = num_queues && queues ? queues[0] : NULL;
	const struct command_functions *functions = first ? functions_of_queue(first) : NULL;
	cl_command_buffer_khr(CL_API_CALL * driver)(cl_uint, const cl_command_queue *,
						    const cl_command_buffer_properties_khr *,
						    cl_int *);

	if (!functions || !functions->create) {
		if (errcode_ret)
			*errcode_ret = first ? CL_INVALID_OPERATION : CL_INVALID_VALUE;
		return NULL;
	}
	driver = functions->create;
	return keep(driver(num_queues, queues, properties, errcode_ret), functions, first,
		    errcode_ret);
}

static cl_command_buffer_khr CL_API_CALL remap(cl_command_buffer_khr buffer, cl_bool automatic,
					       cl_uint num_queues, const cl_command_queue *queues,
					       cl_uint num_handles,
					       const cl_mutable_command_khr *handles,
					       cl_mutable_command_khr *handles_ret,
					       cl_int *errcode_ret)
{
	const struct command_functions *functions = command_functions_of(buffer);
	cl_command_buffer_khr(CL_API_CALL * driver)(
		cl_command_buffer_khr, cl_bool, cl_uint, const cl_command_queue *, cl_uint,
		const cl_mutable_command_khr *, cl_mutable_command_khr *, cl_int *);

	if (!functions || !functions->remap) {
		if (errcode_ret)
			*errcode_ret = CL_INVALID_COMMAND_BUFFER_KHR;
		return NULL;
	}
	driver = functions->remap;
	return keep(driver(buffer, automatic, num_queues, queues, num_handles, handles, handles_ret,
			   errcode_ret),
		    functions, num_queues && queues ? queues[0] : NULL, errcode_ret);
}

static cl_int CL_API_CALL retain(cl_command_buffer_khr handle)
{
	cl_int(CL_API_CALL * driver)(cl_command_buffer_khr) = NULL;
	struct command_buffer *b;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	if (b) {
		b->handles++;
		driver = b->functions->retain;
	}
	lock_release(&command_lock);
	return driver ? driver(handle) : CL_INVALID_COMMAND_BUFFER_KHR;
}

/* Before the driver's object can go, as in memobj.c. */
static struct command_buffer *buffer_drop(cl_command_buffer_khr handle, void **driver)
{
	struct command_buffer *b, *gone = NULL;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	if (b)
		*driver = b->functions->release;
	if (b && !--b->handles)
		gone = table_remove(&buffers, handle);
	lock_release(&command_lock);
	return gone;
}

static cl_int CL_API_CALL release(cl_command_buffer_khr handle)
{
	cl_int(CL_API_CALL * driver)(cl_command_buffer_khr) = NULL;
	struct command_buffer *gone = buffer_drop(handle, (void **)&driver);
	cl_int err = driver ? driver(handle) : CL_INVALID_COMMAND_BUFFER_KHR;

	if (gone) {
		for (size_t i = 0; i < gone->count; i++)
			memobj_put(gone->imports[i]);
		free(gone->imports);
		free(gone);
	}
	return err;
}

/* Holds those of @objs that need a bracket. */
static bool remember(cl_command_buffer_khr handle, struct memobj *const *objs, size_t count)
{
	struct command_buffer *b;
	struct memobj **imports = NULL;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	if (b)
		imports = realloc(b->imports, (b->count + count) * sizeof(*imports));
	if (imports)
		b->imports = imports;
	for (size_t i = 0; imports && i < count; i++)
		if (objs[i] && objs[i]->bracket)
			imports[b->count++] = memobj_hold(objs[i]);
	lock_release(&command_lock);
	return imports;
}

static cl_int use(cl_command_buffer_khr handle, struct memobj *const *objs, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any |= objs[i] && objs[i]->bracket;
	if (!any || remember(handle, objs, count))
		return CL_SUCCESS;
	log_error("no memory to remember the dma-bufs of a command buffer");
	return CL_OUT_OF_HOST_MEMORY;
}

cl_int command_buffer_use(cl_command_buffer_khr handle, cl_mem first, cl_mem second)
{
	struct memobj *objs[2] = { memobj_get(first), memobj_get(second) };
	cl_int err = use(handle, objs, 2);

	memobj_put(objs[0]);
	memobj_put(objs[1]);
	return err;
}

/* Arguments are taken when the command is recorded. */
static cl_int CL_API_CALL ndrange_kernel(
	cl_command_buffer_khr buffer, cl_command_queue queue, const cl_properties *properties,
	cl_kernel kernel, cl_uint work_dim, const size_t *offset, const size_t *global,
	const size_t *local, cl_uint num_sync_points, const cl_sync_point_khr *sync_points,
	cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle)
{
	const struct command_functions *functions = command_functions_of(buffer);
	__typeof__(&ndrange_kernel) driver = functions ? functions->ndrange_kernel : NULL;
	struct kernel_imports imports;
	cl_int err;

	if (!driver)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	err = kernel_imports_get(kernel, &imports);
	if (!err)
		err = use(buffer, imports.objs, imports.count);
	kernel_imports_put(&imports);
	if (err)
		return err;
	return driver(buffer, queue, properties, kernel, work_dim, offset, global, local,
		      num_sync_points, sync_points, sync_point, mutable_handle);
}

/* The imports that @handle uses, and the queue it was made for where @queue names none. */
static cl_int buffer_imports(cl_command_buffer_khr handle, struct kernel_imports *imports,
			     cl_command_queue *queue)
{
	const struct command_buffer *b;
	bool reserved;

	lock_acquire(&command_lock);
	b = table_get(&buffers, handle);
	reserved = kernel_imports_reserve(imports, b ? b->count : 0);
	for (size_t i = 0; b && reserved && i < b->count; i++)
		imports->objs[imports->count++] = memobj_hold(b->imports[i]);
	if (b && !*queue)
		*queue = b->queue;
	lock_release(&command_lock);
	if (reserved)
		return CL_SUCCESS;
	log_error("no memory to list the dma-bufs of a command buffer");
	return CL_OUT_OF_HOST_MEMORY;
}

static cl_int CL_API_CALL enqueue(cl_uint num_queues, cl_command_queue *queues,
				  cl_command_buffer_khr buffer, cl_uint num_wait,
				  const cl_event *wait, cl_event *event)
{
	cl_command_queue queue = num_queues && queues ? queues[0] : NULL;
	const struct command_functions *functions = command_functions_of(buffer);
	__typeof__(&enqueue) driver = functions ? functions->enqueue : NULL;
	struct kernel_imports imports;
	struct access a;
	cl_int err;

	if (!driver)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	access_none(&a, num_wait, wait, event);
	err = buffer_imports(buffer, &imports, &queue);
	if (!err)
		err = access_begin(&a, queue, imports.objs, imports.count, ACCESS_BOTH);
	kernel_imports_put(&imports);
	if (err)
		return err;
	err = driver(num_queues, queues, buffer, a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

/* A NULL platform is the one that the loader chooses. */
static bool takes_properties(cl_platform_id platform)
{
	cl_name_version list[512];
	size_t size;

	if (next.clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION_KHR, sizeof(list),
				   list, &size))
		return false;
	for (size_t i = 0; i < size / sizeof(list[0]); i++)
		if (!strcmp(list[i].name, "cl_khr_command_buffer"))
			return list[i].version >= CL_MAKE_VERSION(0, 9, 5);
	return false;
}

void *command_buffer_function(cl_platform_id platform, const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} ours[] = {
		{ "clCreateCommandBufferKHR", (void *)create },
		{ "clRetainCommandBufferKHR", (void *)retain },
		{ "clReleaseCommandBufferKHR", (void *)release },
		{ "clEnqueueCommandBufferKHR", (void *)enqueue },
		{ "clRemapCommandBufferKHR", (void *)remap },
		{ "clCommandNDRangeKernelKHR", (void *)ndrange_kernel },
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strcmp(ours[i].name, name))
			return ours[i].function;
	return command_copy_function(name, takes_properties(platform));
}
