/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object is an import, or a sub-buffer or image on an import: 64 bytes, in rows, in memory that
 * the test can read.  0xee fills the memory around the object, so a stray write shows.
 */
#ifndef TESTS_SPEC_OBJECT_H
#define TESTS_SPEC_OBJECT_H

#include "spec.h"

enum { BYTES = 64, PIXEL = 4, SIDE = 4 }; /* SIDE x SIDE pixels */

enum shape {
	BUFFER,		     /* the import */
	SUB_BUFFER,	     /* at the lowest origin above 0 that the device accepts */
	IMAGE,		     /* 2D, on the import, rows longer than the picture */
	IMAGE_OF_SUB_BUFFER, /* like IMAGE, on a sub-buffer */
	IMAGE_1D,	     /* of 16 pixels, on the import */
};

enum memory_type { HOST_MEMORY, DMA_BUF_MEMORY };

struct object {
	enum shape shape;
	cl_mem mem;
	cl_mem import;
	cl_mem parent;	       /* the object under mem, or NULL */
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
 * Makes an object on new memory, and releases all after the test.  If the device has no objects of
 * @shape, the test is skipped.  @flags are for the import and for the objects on the import.
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
