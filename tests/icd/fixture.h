/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer on the stub, in the test's own process.  Each test loads a fresh copy of the layer, and
 * does not depend on an earlier test:
 *
 *	fixture_reset();
 *	stub_set(...); setenv("CLIMPORT_...");
 *	fixture_open();
 *	...
 *	fixture_close();	fails the test if an object is still alive
 */
#ifndef TESTS_ICD_FIXTURE_H
#define TESTS_ICD_FIXTURE_H

#include <stdbool.h>
#include <unistd.h>

#include "fake_dmabuf.h"
#include "harness.h"
#include "process.h"
#include "stub.h"

#include <CL/cl_ext.h>
#include <CL/cl_layer.h>

#define TABLE_ENTRIES (sizeof(struct _cl_icd_dispatch) / sizeof(void *))

typedef __typeof__(&clImportMemoryARM) import_function;

/* The functions of an application: the layer's, and the stub's where the layer has no function. */
extern struct _cl_icd_dispatch cl;

struct fixture {
	cl_platform_id platform;
	cl_device_id device[4];
	cl_uint num_devices;
	cl_context context;	/* of all devices */
	cl_command_queue queue; /* in order, with profiling, of the first device */
	cl_program program;
	import_function import;
	unsigned notices; /* calls of the context's callback */
	char notice[256]; /* the message of the last call */
};

extern struct fixture fix;

/* The property list of an import of a dma-buf. */
extern const cl_import_properties_arm fixture_dma_buf[];

void fixture_reset(void);
void fixture_open(void);
void fixture_close(void);

/* fixture_close() without the check for live objects. */
void fixture_release(void);

/*
 * The two halves of fixture_open(): load a fresh copy of the layer, and set the copy up over
 * @target.
 */
void *layer_copy(void);
void layer_init(void *copy, const struct _cl_icd_dispatch *target, struct _cl_icd_dispatch *merged);

/* Import and return the buffer; a failed import fails the test. */
cl_mem fixture_import_host(cl_mem_flags flags, void *memory, size_t size);
cl_mem fixture_import_dmabuf(int fd, size_t size);

/* Expects an import to fail, and returns the error. */
cl_int fixture_import_error(cl_context context, cl_mem_flags flags,
			    const cl_import_properties_arm *properties, void *memory, size_t size);

cl_mem fixture_create_sub_buffer(cl_mem parent, size_t origin, size_t size);

/* An image of four-byte pixels on @buffer; an image without a buffer if @buffer is NULL. */
cl_mem fixture_create_image(cl_mem_object_type type, cl_mem buffer, size_t width, size_t height,
			    size_t pitch);

/* Returns a 4 x 4 image with a row pitch of 64 bytes on @buffer, or NULL and the error. */
cl_mem fixture_try_image(cl_mem_flags flags, cl_mem buffer, cl_int *err);

/*
 * Whether a forbidden call refuses @mem as an import.  The call's arguments are wrong, so the call
 * fails for other objects too, with other errors.
 */
bool fixture_is_import(cl_mem mem);

/*
 * Creates a kernel of the stub's builtin.c.  The only argument of the kernel increment is a memory
 * object.
 */
cl_kernel fixture_create_kernel(const char *name);
cl_kernel fixture_create_increment(cl_mem mem);
cl_int fixture_enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint num, const cl_event *list,
		       cl_event *event);

/* Creates the kernel increment on @mem, runs a single work-item and waits. */
void fixture_increment(cl_mem mem);

/* Whether the name of an extension of @device begins with @begin. */
bool fixture_device_reports(cl_device_id device, const char *begin);

cl_command_queue fixture_create_queue(cl_command_queue_properties properties);
cl_int fixture_event_status(cl_event event);

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

/* A place or length in memory whose pages have the size of this machine's. */
struct pages {
	int pages, bytes;
};

static inline size_t pages_bytes(struct pages p)
{
	return (size_t)p.pages * PAGE + (size_t)p.bytes;
}

/* Maps zeroed pages, until the next fixture_reset(). */
unsigned char *pages_map(size_t count);
void pages_free(void);

/* The address of an unmapped page. */
unsigned char *pages_hole(void);

/* For process_settles(): whether no fake dma-buf is mapped. */
bool fixture_is_unmapped(void *);

/* For process_settles(): whether at most *@count fake dma-bufs are mapped. */
bool fixture_mapped_at_most(void *count);

#endif
