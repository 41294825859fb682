/* SPDX-License-Identifier: Apache-2.0 */
#include "external.h"

#include <fcntl.h>

#include "kernels.h"
#include "substitute.h"

const struct edge external_edges[2] = {
	{ "acquire", "clEnqueueAcquireExternalMemObjectsKHR",
	  CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR, false,
	  OPENCL_clEnqueueAcquireExternalMemObjectsKHR },
	{ "release", "clEnqueueReleaseExternalMemObjectsKHR",
	  CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR, true,
	  OPENCL_clEnqueueReleaseExternalMemObjectsKHR },
};

const struct external_kind external_kinds[2] = { { "buffer", false }, { "image", true } };

edge_function external_function(const struct edge *edge)
{
	void *address = clGetExtensionFunctionAddressForPlatform(spec.platform, edge->function);
	edge_function function; /* ISO C has no cast from void * to a function */

	memcpy(&function, &address, sizeof(function));
	return function;
}

cl_int external_enqueue_edge(const struct edge *edge, cl_command_queue queue, cl_uint count,
			     const cl_mem *mems, cl_uint num_wait, const cl_event *wait,
			     cl_event *event)
{
	const edge_function function = external_function(edge);

	if (spec.is_plain)
		return clEnqueueMarkerWithWaitList(queue, num_wait, wait, event);
	EXPECT(function != NULL);
	opencl_enter(edge->call, true);
	return opencl_leave(edge->call, function(queue, count, mems, num_wait, wait, event));
}

void external_run_edge(const struct edge *edge, cl_mem mem)
{
	EXPECT_EQ(external_enqueue_edge(edge, spec.queue, 1, &mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
}

void external_set_descriptor(struct external_request *r, const struct dma_buf *buf)
{
	int fd = fcntl(buf->fd, F_DUPFD_CLOEXEC, 3);

	EXPECT(fd >= 0);
	r->properties[0] = CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR;
	r->properties[1] = (cl_mem_properties)fd;
}

struct external_request external_request(const struct dma_buf *buf, bool is_image)
{
	struct external_request r = { .is_image = is_image,
				      .context = spec.context,
				      .flags = CL_MEM_READ_WRITE,
				      .size = buf->size,
				      .format = &rgba,
				      .desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
						.image_width = SIDE,
						.image_height = SIDE } };

	if (is_image) {
		need_images();
		r.desc.image_row_pitch = object_row_pitch();
	}
	external_set_descriptor(&r, buf);
	return r;
}

/* In a comparison, the driver's own buffer over the dma-buf. */
static cl_mem external_substitute(const struct external_request *r, cl_int *error)
{
	int fd = (int)r->properties[1];

	if (r->is_image)
		test_skip("an image cannot be compared");
	return substitute_import(r->context, r->flags, type_dma_buf, &fd, r->size, error);
}

cl_mem external_create_object(const struct external_request *r, cl_int *error)
{
	if (spec.is_plain)
		return external_substitute(r, error);
	if (r->is_image)
		return clCreateImageWithProperties(r->context, r->properties, r->flags, r->format,
						   &r->desc, r->host_ptr, error);
	return clCreateBufferWithProperties(r->context, r->properties, r->flags, r->size,
					    r->host_ptr, error);
}

cl_mem external_make_object(const struct external_request *r)
{
	cl_int error = 1;
	cl_mem mem = released_later(external_create_object(r, &error));

	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT(mem != NULL);
	return mem;
}

cl_mem external_buffer(const struct dma_buf *buf)
{
	const struct external_request r = external_request(buf, false);

	return external_make_object(&r);
}

void external_refuse(const struct external_request *r, cl_int wanted)
{
	cl_int error = 1;

	EXPECT(!released_later(external_create_object(r, &error)));
	EXPECT(error < 0);
	if (wanted)
		EXPECT_EQ(error, wanted);
	EXPECT(!released_later(external_create_object(r, NULL)));
}

void external_fill(struct dma_buf *buf, size_t size, unsigned int seed)
{
	dma_buf_begin(buf);
	spec_fill_memory(buf->memory, size, seed);
	dma_buf_end(buf);
}

bool external_is(struct dma_buf *buf, size_t size, unsigned int seed)
{
	bool is;

	dma_buf_begin(buf);
	is = spec_memory_is(buf->memory, size, seed);
	dma_buf_end(buf);
	return is;
}

void external_expect_shared(cl_mem mem, struct dma_buf *buf, size_t size)
{
	for (unsigned int turn = 1; turn < 4; turn++) {
		external_fill(buf, size, turn);
		external_run_edge(ACQUIRE, mem);
		kernels_add(mem, size, 1, 10);
		kernels_add(mem, size, 1, 5);
		external_run_edge(RELEASE, mem);
		EXPECT(external_is(buf, size, turn + 15));
	}
}

/* Another device than spec.device, or NULL. */
static cl_device_id external_find_device(bool reports)
{
	const cl_device_id tested = spec.device;
	cl_device_id devices[64], found = NULL;
	cl_uint count = 0;

	EXPECT_EQ(clGetDeviceIDs(spec.platform, CL_DEVICE_TYPE_ALL, 64, devices, &count),
		  CL_SUCCESS);
	for (cl_uint i = 0; i < count && i < 64 && !found; i++) {
		spec.device = devices[i];
		if (devices[i] != tested &&
		    spec_device_reports("cl_khr_external_memory_dma_buf") == reports)
			found = devices[i];
	}
	spec.device = tested;
	return found;
}

cl_device_id external_second_device(void)
{
	const cl_device_id found = external_find_device(true);

	if (!found)
		test_skip("platform has no second device with cl_khr_external_memory_dma_buf");
	return found;
}

cl_device_id external_incapable_device(void)
{
	const cl_device_id found = external_find_device(false);

	if (!found)
		test_skip("platform has no device without cl_khr_external_memory_dma_buf");
	return found;
}

cl_context external_context(const cl_device_id *devices, cl_uint count)
{
	const cl_context_properties list[] = { CL_CONTEXT_PLATFORM,
					       (cl_context_properties)spec.platform, 0 };
	cl_int error = 1;
	cl_context context = clCreateContext(list, count, devices, NULL, NULL, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	spec_undo_later(spec_release_context, context);
	return context;
}
