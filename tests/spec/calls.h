/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sixteen functions of the list in the section Errors, on every object that
 * they take, as source and as destination: called the same way where they must
 * fail (forbidden.c) and where they must work (host_access.c).
 */
#ifndef TESTS_SPEC_CALLS_H
#define TESTS_SPEC_CALLS_H

#include "object.h"

enum role { SOURCE, DESTINATION };		  /* what the object is in the transfer */
enum partner { NONE, PLAIN_BUFFER, PLAIN_IMAGE }; /* the other side, if it is a cl_mem */

struct call {
	const struct object *object;
	enum role role;
	cl_mem partner;
	unsigned char host[BYTES]; /* the other side, or what it holds */
	size_t region[3];	   /* in pixels */
	cl_event event;
	void *mapped; /* results of the map calls */
	size_t row_pitch, slice_pitch;
};

struct call_row {
	cl_int (*run)(struct call *);
	enum shape shape;
	enum role role;
	enum partner partner;
};

/* name, function, object, what it is, the other side */
#define CALLS(X)                                                                                   \
	X(map_buffer, clEnqueueMapBuffer, BUFFER, DESTINATION, NONE)                               \
	X(map_sub_buffer, clEnqueueMapBuffer, SUB_BUFFER, DESTINATION, NONE)                       \
	X(map_image, clEnqueueMapImage, IMAGE, DESTINATION, NONE)                                  \
	X(map_image_of_sub, clEnqueueMapImage, IMAGE_OF_SUB_BUFFER, DESTINATION, NONE)             \
	X(map_image_1d, clEnqueueMapImage, IMAGE_1D, DESTINATION, NONE)                            \
	X(unmap_buffer, clEnqueueUnmapMemObject, BUFFER, DESTINATION, NONE)                        \
	X(unmap_sub_buffer, clEnqueueUnmapMemObject, SUB_BUFFER, DESTINATION, NONE)                \
	X(unmap_image, clEnqueueUnmapMemObject, IMAGE, DESTINATION, NONE)                          \
	X(unmap_image_of_sub, clEnqueueUnmapMemObject, IMAGE_OF_SUB_BUFFER, DESTINATION, NONE)     \
	X(unmap_image_1d, clEnqueueUnmapMemObject, IMAGE_1D, DESTINATION, NONE)                    \
	X(read_image, clEnqueueReadImage, IMAGE, SOURCE, NONE)                                     \
	X(read_image_of_sub, clEnqueueReadImage, IMAGE_OF_SUB_BUFFER, SOURCE, NONE)                \
	X(read_image_1d, clEnqueueReadImage, IMAGE_1D, SOURCE, NONE)                               \
	X(write_image, clEnqueueWriteImage, IMAGE, DESTINATION, NONE)                              \
	X(write_image_of_sub, clEnqueueWriteImage, IMAGE_OF_SUB_BUFFER, DESTINATION, NONE)         \
	X(write_image_1d, clEnqueueWriteImage, IMAGE_1D, DESTINATION, NONE)                        \
	X(read_buffer, clEnqueueReadBuffer, BUFFER, SOURCE, NONE)                                  \
	X(read_sub_buffer, clEnqueueReadBuffer, SUB_BUFFER, SOURCE, NONE)                          \
	X(read_buffer_rect, clEnqueueReadBufferRect, BUFFER, SOURCE, NONE)                         \
	X(read_sub_buffer_rect, clEnqueueReadBufferRect, SUB_BUFFER, SOURCE, NONE)                 \
	X(write_buffer, clEnqueueWriteBuffer, BUFFER, DESTINATION, NONE)                           \
	X(write_sub_buffer, clEnqueueWriteBuffer, SUB_BUFFER, DESTINATION, NONE)                   \
	X(write_buffer_rect, clEnqueueWriteBufferRect, BUFFER, DESTINATION, NONE)                  \
	X(write_sub_buffer_rect, clEnqueueWriteBufferRect, SUB_BUFFER, DESTINATION, NONE)          \
	X(copy_from_buffer, clEnqueueCopyBuffer, BUFFER, SOURCE, PLAIN_BUFFER)                     \
	X(copy_from_sub_buffer, clEnqueueCopyBuffer, SUB_BUFFER, SOURCE, PLAIN_BUFFER)             \
	X(copy_to_buffer, clEnqueueCopyBuffer, BUFFER, DESTINATION, PLAIN_BUFFER)                  \
	X(copy_to_sub_buffer, clEnqueueCopyBuffer, SUB_BUFFER, DESTINATION, PLAIN_BUFFER)          \
	X(copy_rect_from_buffer, clEnqueueCopyBufferRect, BUFFER, SOURCE, PLAIN_BUFFER)            \
	X(copy_rect_from_sub_buffer, clEnqueueCopyBufferRect, SUB_BUFFER, SOURCE, PLAIN_BUFFER)    \
	X(copy_rect_to_buffer, clEnqueueCopyBufferRect, BUFFER, DESTINATION, PLAIN_BUFFER)         \
	X(copy_rect_to_sub_buffer, clEnqueueCopyBufferRect, SUB_BUFFER, DESTINATION, PLAIN_BUFFER) \
	X(copy_buffer_to_plain_image, clEnqueueCopyBufferToImage, BUFFER, SOURCE, PLAIN_IMAGE)     \
	X(copy_sub_buffer_to_plain_image, clEnqueueCopyBufferToImage, SUB_BUFFER, SOURCE,          \
	  PLAIN_IMAGE)                                                                             \
	X(copy_plain_buffer_to_image, clEnqueueCopyBufferToImage, IMAGE, DESTINATION,              \
	  PLAIN_BUFFER)                                                                            \
	X(copy_plain_buffer_to_image_of_sub, clEnqueueCopyBufferToImage, IMAGE_OF_SUB_BUFFER,      \
	  DESTINATION, PLAIN_BUFFER)                                                               \
	X(copy_plain_buffer_to_image_1d, clEnqueueCopyBufferToImage, IMAGE_1D, DESTINATION,        \
	  PLAIN_BUFFER)                                                                            \
	X(copy_image_to_plain_buffer, clEnqueueCopyImageToBuffer, IMAGE, SOURCE, PLAIN_BUFFER)     \
	X(copy_image_of_sub_to_plain_buffer, clEnqueueCopyImageToBuffer, IMAGE_OF_SUB_BUFFER,      \
	  SOURCE, PLAIN_BUFFER)                                                                    \
	X(copy_image_1d_to_plain_buffer, clEnqueueCopyImageToBuffer, IMAGE_1D, SOURCE,             \
	  PLAIN_BUFFER)                                                                            \
	X(copy_plain_image_to_buffer, clEnqueueCopyImageToBuffer, BUFFER, DESTINATION,             \
	  PLAIN_IMAGE)                                                                             \
	X(copy_plain_image_to_sub_buffer, clEnqueueCopyImageToBuffer, SUB_BUFFER, DESTINATION,     \
	  PLAIN_IMAGE)                                                                             \
	X(copy_from_image, clEnqueueCopyImage, IMAGE, SOURCE, PLAIN_IMAGE)                         \
	X(copy_from_image_of_sub, clEnqueueCopyImage, IMAGE_OF_SUB_BUFFER, SOURCE, PLAIN_IMAGE)    \
	X(copy_from_image_1d, clEnqueueCopyImage, IMAGE_1D, SOURCE, PLAIN_IMAGE)                   \
	X(copy_to_image, clEnqueueCopyImage, IMAGE, DESTINATION, PLAIN_IMAGE)                      \
	X(copy_to_image_of_sub, clEnqueueCopyImage, IMAGE_OF_SUB_BUFFER, DESTINATION, PLAIN_IMAGE) \
	X(copy_to_image_1d, clEnqueueCopyImage, IMAGE_1D, DESTINATION, PLAIN_IMAGE)                \
	X(fill_buffer, clEnqueueFillBuffer, BUFFER, DESTINATION, NONE)                             \
	X(fill_sub_buffer, clEnqueueFillBuffer, SUB_BUFFER, DESTINATION, NONE)                     \
	X(fill_image, clEnqueueFillImage, IMAGE, DESTINATION, NONE)                                \
	X(fill_image_of_sub, clEnqueueFillImage, IMAGE_OF_SUB_BUFFER, DESTINATION, NONE)           \
	X(fill_image_1d, clEnqueueFillImage, IMAGE_1D, DESTINATION, NONE)

/*
 * Each makes the call of its name.  The ones that map also compare what they
 * find, write c->host and unmap; the one that unmaps maps before, where that
 * is allowed.  Returns the first error, or 1 for a wrong byte.
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

/* What the other side holds. */
bool call_other_is(struct call *c, const struct call_row *row, unsigned int seed);

#define CALL_ROW(api, shape, role, partner)      \
	{                                        \
		call_##api, shape, role, partner \
	}

#endif /* TESTS_SPEC_CALLS_H */
