/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sixteen functions of the list in the section Errors, with every kind of object as source and
 * as destination.  forbidden.c expects each call to fail; host_access.c expects each call to work.
 */
#ifndef TESTS_SPEC_CALLS_H
#define TESTS_SPEC_CALLS_H

#include "object.h"
#include "queues.h"

enum role { SOURCE, DESTINATION };		  /* of the object in the transfer */
enum partner { NONE, PLAIN_BUFFER, PLAIN_IMAGE }; /* the cl_mem on the other side */

/*
 * The bytes that a call moves: @rows of @columns bytes.  Both sides have 64 bytes; byte number
 * start + row * pitch + column of a side takes part.
 */
struct call_part {
	struct call_side {
		size_t start, pitch;
	} object, other;
	size_t columns, rows;
};

/* How a call is made, besides its bytes. */
struct call_form {
	const char *name;
	enum queue_kind queue;
	bool part;	      /* not all bytes: offsets and origins above 0 */
	bool returns;	      /* CL_FALSE for the argument blocking */
	bool waits;	      /* behind a user event; if the event is not complete, with returns */
	bool quiet;	      /* NULL for the event, and for errcode_ret */
	bool imported;	      /* the other side is an import, too */
	cl_map_flags map;     /* 0 stands for CL_MAP_READ | CL_MAP_WRITE */
	bool in_page;	      /* the import begins inside of a page */
	bool with_properties; /* the image is made by clCreateImageWithProperties() */
};

struct call {
	const struct object *object;
	const struct call_form *form;
	enum role role;
	cl_mem partner;
	unsigned char *partner_memory; /* of an imported partner */
	struct call_part part;
	unsigned char host[BYTES]; /* the other side, or the bytes of the other side */
	size_t region[3];	   /* of all of an image, in pixels */
	cl_command_queue queue;
	cl_event gate; /* the wait list, or NULL */
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
 * Each function makes the OpenCL call of the same name and returns the error of the call.  The map
 * functions leave the pointer in c->mapped; the unmap function maps first, if mapping is allowed,
 * and uses the mapped bytes like call_use_mapped().
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

/* Whether the call has the argument blocking. */
bool call_can_block(const struct call_row *row);

/* All bytes again, or a part. */
void call_set_part(struct call *c, const struct call_row *row, bool part);

struct object_form call_object_form(const struct call_row *row, const struct call_form *form,
				    enum memory_type type);

/* Whether the form fits the row, and the device has such objects and queues. */
bool call_takes_form(const struct call_row *row, const struct call_form *form,
		     enum memory_type type);

enum { OBJECT_SEED = 3, OTHER_SEED = 77 };

/* Fills the object and the other side with their seeds; @o and @form live as long as @c. */
void call_prepare(struct call *c, const struct call_row *row, const struct object *o,
		  const struct call_form *form);

/*
 * Expects the object's bytes of call_prepare() at c->mapped, writes c->host there, and unmaps.
 * Returns CL_SUCCESS, the first error, or 1 for a wrong byte.
 */
cl_int call_use_mapped(struct call *c);

/* Whether the call has moved its bytes, and no other byte has changed. */
bool call_has_moved(struct call *c, const struct call_row *row);

/* Whether the other side holds the bytes of @seed. */
bool call_other_is(struct call *c, const struct call_row *row, unsigned int seed);

/* CL_COMMAND_READ_BUFFER for clEnqueueReadBuffer, and so on. */
cl_command_type call_command_type(const struct call_row *row);

#endif /* TESTS_SPEC_CALLS_H */
