/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports and what is made from them, all seen the same way: 64 bytes, in rows,
 * in memory that the test can look at.  The memory around them is filled with
 * 0xee, so that a stray write shows.
 */
#ifndef TESTS_SPEC_OBJECT_H
#define TESTS_SPEC_OBJECT_H

#include "spec.h"

enum { BYTES = 64, PIXEL = 4, SIDE = 4 }; /* SIDE x SIDE pixels */

enum shape {
	BUFFER,		     /* the import */
	SUB_BUFFER,	     /* at the lowest origin that the device takes but 0 */
	IMAGE,		     /* 2D, on the import, rows longer than the picture */
	IMAGE_OF_SUB_BUFFER, /* the same on a sub-buffer */
	IMAGE_1D,	     /* of 16 pixels, on the import */
};

enum memory_type { HOST_MEMORY, DMA_BUF_MEMORY };

struct object {
	enum shape shape;
	cl_mem mem;
	cl_mem import;
	cl_mem parent;	       /* what mem was made from, or NULL */
	unsigned char *memory; /* all of the import */
	size_t memory_size;
	size_t origin;	      /* of the object in the memory */
	size_t columns, rows; /* bytes in a row, and rows */
	size_t pitch;	      /* bytes from row to row */
	size_t region[3];     /* of an image, in pixels */
};

extern const cl_image_format rgba; /* of all images: CL_RGBA, CL_UNSIGNED_INT8 */

/* Whether the device has such objects; need_shape() skips the test if not. */
bool shape_works(enum shape shape);
void need_shape(enum shape shape);

void need_images(void); /* of any kind, made of whatever */

/*
 * Makes one on fresh memory, all released after the test; skips it where the
 * device has no such thing.  @flags of the import and of what is made from it.
 */
void object_make(struct object *o, enum shape shape, enum memory_type type, cl_mem_flags flags);

/* The offset for sub-buffers of which images are made, too. */
size_t object_origin(void);

/* The object's bytes, from and to the memory itself. */
void object_fill(const struct object *o, unsigned int seed);
bool object_is(const struct object *o, unsigned int seed);
bool object_holds(const struct object *o, const unsigned char bytes[BYTES]);

/* Whether the memory around the object is still 0xee. */
bool object_padding_is_intact(const struct object *o);

#endif /* TESTS_SPEC_OBJECT_H */
