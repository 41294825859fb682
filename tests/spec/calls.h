/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sixteen functions of the list in the section Errors, with every kind of object as source and
 * as destination.  forbidden.c expects each call to fail; host_access.c expects each call to work.
 */
#ifndef TESTS_SPEC_CALLS_H
#define TESTS_SPEC_CALLS_H

#include "object.h"

enum role { SOURCE, DESTINATION };		  /* of the object in the transfer */
enum partner { NONE, PLAIN_BUFFER, PLAIN_IMAGE }; /* the cl_mem on the other side */

struct call {
	const struct object *object;
	enum role role;
	cl_mem partner;
	unsigned char host[BYTES]; /* the other side, or the bytes of the other side */
	size_t region[3];	   /* in pixels */
	cl_event event;
	void *mapped; /* results of the map calls */
	size_t row_pitch, slice_pitch;
};

struct call_row {
	const char *name;
	cl_int (*run)(struct call *);
	enum shape shape;
	enum role role;
	enum partner partner;
};

/*
 * A row for each function, object and side of the transfer: by function, and all in the order of
 * the members.
 */
union call_rows {
	struct {
		struct call_row map_buffer[2];
		struct call_row map_image[3];
		struct call_row unmap_mem_object[5];
		struct call_row read_image[3];
		struct call_row write_image[3];
		struct call_row read_buffer[2];
		struct call_row read_buffer_rect[2];
		struct call_row write_buffer[2];
		struct call_row write_buffer_rect[2];
		struct call_row copy_buffer[4];
		struct call_row copy_buffer_rect[4];
		struct call_row copy_buffer_to_image[5];
		struct call_row copy_image_to_buffer[5];
		struct call_row copy_image[6];
		struct call_row fill_buffer[2];
		struct call_row fill_image[3];
	};
	struct call_row all[53];
};
extern const union call_rows call_rows;

/*
 * Each function makes the OpenCL call of the same name.  The map functions also compare the mapped
 * bytes, write c->host and unmap.  The unmap function maps first, if mapping is allowed.  The
 * result is the first error, or 1 for a wrong byte.
 */
cl_int call_clEnqueueMapBuffer(struct call *c);
cl_int call_clEnqueueMapImage(struct call *c);
cl_int call_clEnqueueUnmapMemObject(struct call *c);
cl_int call_clEnqueueReadImage(struct call *c);
cl_int call_clEnqueueWriteImage(struct call *c);
cl_int call_clEnqueueReadBuffer(struct call *c);
cl_int call_clEnqueueReadBufferRect(struct call *c);
cl_int call_clEnqueueWriteBuffer(struct call *c);
cl_int call_clEnqueueWriteBufferRect(struct call *c);
cl_int call_clEnqueueCopyBuffer(struct call *c);
cl_int call_clEnqueueCopyBufferRect(struct call *c);
cl_int call_clEnqueueCopyBufferToImage(struct call *c);
cl_int call_clEnqueueCopyImageToBuffer(struct call *c);
cl_int call_clEnqueueCopyImage(struct call *c);
cl_int call_clEnqueueFillBuffer(struct call *c);
cl_int call_clEnqueueFillImage(struct call *c);

enum { OBJECT_SEED = 3, OTHER_SEED = 77 };

/* Fills the object and the other side with their seeds; @o lives as long as @c. */
void call_prepare(struct call *c, const struct call_row *row, const struct object *o);

/* Whether the other side holds the bytes of @seed. */
bool call_other_is(struct call *c, const struct call_row *row, unsigned int seed);

#endif /* TESTS_SPEC_CALLS_H */
