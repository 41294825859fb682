/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer on the stub, in this process.  Each test loads a copy of the layer
 * of its own, so that nothing is left from the one before:
 *
 *	fixture_reset();
 *	stub_set(...); setenv("CLIMPORT_...");
 *	fixture_open();
 *	...
 *	fixture_close();	fails the test if anything is left alive
 */
#ifndef TESTS_ICD_FIXTURE_H
#define TESTS_ICD_FIXTURE_H

#include <stdbool.h>

#include "fake_dmabuf.h"
#include "harness.h"
#include "process.h"
#include "stub.h"

#include <CL/cl_ext.h>
#include <CL/cl_layer.h>

#define TABLE_ENTRIES (sizeof(struct _cl_icd_dispatch) / sizeof(void *))

typedef __typeof__(&clImportMemoryARM) import_function;

/* What an application calls: the layer's functions, else the stub's. */
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
	char notice[256]; /* the last one's message */
};

extern struct fixture fix;

void fixture_reset(void);
void fixture_open(void);
void fixture_close(void);

/* fixture_close() without the check. */
void fixture_release(void);

/* The parts of fixture_open(): a fresh copy of the layer, and it set up over @target. */
void *layer_copy(void);
void layer_init(void *copy, const struct _cl_icd_dispatch *target, struct _cl_icd_dispatch *merged);

/* Fails the test unless this succeeds. */
cl_mem fixture_import_host(cl_mem_flags flags, void *memory, size_t size);
cl_mem fixture_import_dmabuf(int fd, size_t size);

/* The error of an import that must fail. */
cl_int fixture_import_error(cl_context context, cl_mem_flags flags,
			    const cl_import_properties_arm *properties, void *memory, size_t size);

cl_mem fixture_create_sub_buffer(cl_mem parent, size_t origin, size_t size);

/* An image of four-byte pixels on a buffer, or over nothing. */
cl_mem fixture_create_image(cl_mem_object_type type, cl_mem buffer, size_t width, size_t height,
			    size_t pitch);

/* As the application sees it: a forbidden call, which is wrong for other objects, too. */
bool fixture_is_import(cl_mem mem);

/* A kernel of the stub's builtin.c; increment takes one object. */
cl_kernel fixture_create_kernel(const char *name);
cl_kernel fixture_create_increment(cl_mem mem);
cl_int fixture_enqueue(cl_command_queue queue, cl_kernel kernel, cl_uint num, const cl_event *list,
		       cl_event *event);

/* Both, for one byte, and waits. */
void fixture_increment(cl_mem mem);

cl_command_queue fixture_create_queue(cl_command_queue_properties properties);
cl_int fixture_event_status(cl_event event);

/* Pages of this process, zero, until the next fixture_reset(). */
unsigned char *pages_map(size_t count);
void pages_free(void);

/* The address of a page that is not mapped. */
unsigned char *pages_hole(void);

/* For process_settles(): no fake dma-buf is mapped. */
bool fixture_is_unmapped(void *);

#endif
