/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object is an import, or a sub-buffer or image on an import: 64 bytes, in rows, in memory that
 * the test can read.  0xee fills the memory around the object, so a stray write shows.
 */
#ifndef TESTS_SPEC_OBJECT_H
#define TESTS_SPEC_OBJECT_H

#include "spec.h"

struct dma_buf;

enum { BYTES = 64, PIXEL = 4, SIDE = 4 }; /* SIDE x SIDE pixels */

enum shape {
	BUFFER,	    /* the import */
	SUB_BUFFER, /* at the lowest origin above 0 that the device accepts */
	IMAGE, /* 2D, on the import or itself of EXTERNAL_MEMORY, rows longer than the picture */
	IMAGE_OF_SUB_BUFFER, /* like IMAGE, on a sub-buffer */
	IMAGE_1D,	     /* of 16 pixels, on the import */
};

/* EXTERNAL_MEMORY: a dma-buf's, by cl_khr_external_memory; tests acquire and release object.import. */
enum memory_type { HOST_MEMORY, DMA_BUF_MEMORY, EXTERNAL_MEMORY };

struct object {
	enum shape shape;
	enum memory_type type;
	cl_mem mem;
	cl_mem import;
	cl_mem parent;	       /* the object under mem, or NULL */
	struct dma_buf *buf;   /* of EXTERNAL_MEMORY */
	unsigned char *memory; /* whole pages around the import */
	size_t memory_size;
	size_t offset, size;  /* of the import in the memory */
	size_t origin;	      /* of the object in the memory */
	size_t columns, rows; /* bytes in a row, and rows */
	size_t pitch;	      /* bytes from row to row */
	size_t region[3];     /* of an image, in pixels */
};

/* The sentence of all tests by which imports are used as OpenCL's own objects. */
#define R6_55                                                                                      \
	"R6-55 This extension produces cl_mem memory objects which are compatible with all other " \
	"uses of cl_mem in the standard API, including creating images from the resulting cl_mem " \
	"and subject to the restrictions listed in this document."

#define R6_62 "R6-62 Support creating a sub-buffer from an imported buffer."

/* Expects @function, such as clGetMemObjectInfo(), to answer @want, of @type. */
#define QUERY(function, object, what, type, want)                                             \
	do {                                                                                  \
		type value_ = 0;                                                              \
		EXPECT_EQ(function(object, what, sizeof(value_), &value_, NULL), CL_SUCCESS); \
		EXPECT(value_ == (want));                                                     \
	} while (0)

extern const cl_image_format rgba; /* of all images: CL_RGBA, CL_UNSIGNED_INT8 */

/* How an object is made. */
struct object_form {
	enum shape shape;
	enum memory_type type;
	cl_mem_flags flags;   /* CL_MEM_USE_HOST_PTR is for the import alone */
	bool in_page;	      /* the import begins and ends inside of a page; host memory alone */
	bool is_large;	      /* the import has 256 KiB at least */
	bool with_properties; /* an image by clCreateImageWithProperties() */
};

/* Whether the device has such objects; need_shape() skips the test if not. */
bool shape_works(enum shape shape);
void need_shape(enum shape shape);

void need_images(void); /* of any kind, made of whatever */

/*
 * Makes an object on new memory, and releases all after the test.  If the device has no objects of
 * @shape, the test is skipped.  @flags are for the import and for the objects on the import.
 */
void object_make(struct object *o, enum shape shape, enum memory_type type, cl_mem_flags flags);

/* Likewise in another form; if the device has no objects of the form, the test is skipped. */
void object_make_form(struct object *o, const struct object_form *form);

/* NULL, or the reason why the device has no objects of the form. */
const char *object_why_no_form(const struct object_form *form);

/*
 * The object of @shape at object_origin() of @import, or for IMAGE and IMAGE_1D at 0, which the
 * caller releases; NULL, and *@error, if the driver creates no such object.  An image has
 * OBJECT_PIXELS pixels in a row.  A sub-buffer under an image inherits its flags, and lives as long
 * as the image.
 */
enum { OBJECT_PIXELS = BYTES / PIXEL };
cl_mem object_derive(cl_mem import, enum shape shape, cl_mem_flags flags, cl_int *error);

/* Where object_derive() puts the object; bytes. */
size_t object_derived_origin(enum shape shape);

/* Of images from buffers, in bytes: more than a row's pixels take. */
size_t object_row_pitch(void);

/* The offset for sub-buffers of which images are made, too. */
size_t object_origin(void);

/* The object's bytes, from and to the memory itself. */
void object_fill(const struct object *o, unsigned int seed);
bool object_is(const struct object *o, unsigned int seed);
bool object_holds(const struct object *o, const unsigned char bytes[BYTES]);

/* Whether the memory around the object is still 0xee. */
bool object_padding_is_intact(const struct object *o);

#endif /* TESTS_SPEC_OBJECT_H */
