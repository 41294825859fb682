/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory objects of cl_khr_external_memory_dma_buf, and the two commands of cl_khr_external_memory.
 *
 * "Importing memory from a file descriptor transfers ownership": drivers close the descriptor, and climport leaves it to
 * the program.  So each import gets a descriptor of its own, which the test never closes after a successful import.
 */
#ifndef TESTS_SPEC_EXTERNAL_H
#define TESTS_SPEC_EXTERNAL_H

#include "dma_buf.h"
#include "object.h"
#include "queues.h"

/* Of 2023 and later; older headers have some of these under other names. */
#ifndef CL_MEM_DEVICE_HANDLE_LIST_KHR
#define CL_MEM_DEVICE_HANDLE_LIST_KHR 0x2051
#define CL_MEM_DEVICE_HANDLE_LIST_END_KHR 0
#endif
#ifndef CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR
#define CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR 0x2052
#endif

/* The two commands; TEST_EACH() tests each sentence that both sections have. */
struct edge {
	const char *name, *function;
	cl_command_type type;
	bool is_release;
	enum opencl_call call;
};
extern const struct edge external_edges[2];
#define ACQUIRE (&external_edges[0])
#define RELEASE (&external_edges[1])

typedef cl_int(CL_API_CALL *edge_function)(cl_command_queue, cl_uint, const cl_mem *, cl_uint,
					   const cl_event *, cl_event *);
edge_function external_function(const struct edge *edge); /* or NULL */

/* The command, with any arguments; and for an object on spec.queue, complete when the call returns. */
cl_int external_enqueue_edge(const struct edge *edge, cl_command_queue queue, cl_uint count,
			     const cl_mem *mems, cl_uint num_wait, const cl_event *wait,
			     cl_event *event);
void external_run_edge(const struct edge *edge, cl_mem mem);

/* The two ways to make an object. */
struct external_kind {
	const char *name;
	bool is_image;
};
extern const struct external_kind external_kinds[2];

/* The arguments of clCreateBufferWithProperties(), or of clCreateImageWithProperties(). */
struct external_request {
	bool is_image;
	cl_context context;
	cl_mem_properties properties[12]; /* first the dma-buf's descriptor */
	cl_mem_flags flags;
	size_t size;
	const cl_image_format *format;
	cl_image_desc desc;
	void *host_ptr;
};

/* A request that has to succeed: all bytes of @buf, or SIDE rows of pixels at object_row_pitch(). */
struct external_request external_request(const struct dma_buf *buf, bool is_image);

/* The dma-buf, again with a new descriptor. */
void external_set_descriptor(struct external_request *r, const struct dma_buf *buf);

cl_mem external_create_object(const struct external_request *r, cl_int *error);

/* Expects success; released after the test. */
cl_mem external_make_object(const struct external_request *r);
cl_mem external_buffer(const struct dma_buf *buf);

/* Expects no object, also with errcode_ret NULL, and the error @wanted, or with 0 any error. */
void external_refuse(const struct external_request *r, cl_int wanted);

/* Skips unless images of dma-bufs are linear. */
void external_need_linear(void);

/* Expects kernels and the host to change the same bytes in turns, each in its time. */
void external_expect_shared(cl_mem mem, struct dma_buf *buf, size_t size);

void external_fill(struct dma_buf *buf, size_t size, unsigned int seed);
bool external_is(struct dma_buf *buf, size_t size, unsigned int seed);

/* Another device of the platform that reports the extension; or the test is skipped. */
cl_device_id external_second_device(void);

/* Likewise one that does not. */
cl_device_id external_incapable_device(void);

/* A context of @count devices, released after the test. */
cl_context external_context(const cl_device_id *devices, cl_uint count);

#endif /* TESTS_SPEC_EXTERNAL_H */
