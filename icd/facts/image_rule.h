/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule under which a device's images over imported memory are zero copy.
 *
 * A driver may copy images though it copies no buffer, or ignore where a sub-buffer begins or how long a row is: the
 * picture is wrong, and no call fails.  Or it dies.  So the self-test (selftest/image.c) makes images over memory of
 * climport's own, and what it has seen is the rule.  Other images are refused.
 *
 * Bytes are in question, so formats are tried by the size of a pixel.  A driver may count addresses and rows in bytes
 * or in pixels, so both are tried for each size.  The kind of memory and its size are the buffer's to prove
 * (host_rule.h).
 */
#ifndef ICD_FACTS_IMAGE_RULE_H
#define ICD_FACTS_IMAGE_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"

/* What an image is made from.  The self-test goes from the harmless to what drivers do not survive. */
enum image_from {
	IMAGE_OF_BUFFER, /* over host memory: CL_MEM_USE_HOST_PTR */
	IMAGE_OF_MEMORY, /* 2D alone: the image has CL_MEM_USE_HOST_PTR */
	IMAGE_OF_SUB_BUFFER,
	IMAGE_OF_DMABUF, /* a buffer over a dma-buf: cl_khr_external_memory */
	IMAGE_OF_PART_OF_DMABUF,
	IMAGE_FROMS,
};

static inline bool image_is_of_part(enum image_from from)
{
	return from == IMAGE_OF_SUB_BUFFER || from == IMAGE_OF_PART_OF_DMABUF;
}

/* 1D images (of buffers) and 2D images of each of them have a rule, with this number. */
#define IMAGE_RULE(from, is_2d) (2u * (from) + (is_2d))
#define IMAGE_RULES (2 * IMAGE_FROMS)

enum image_found {
	IMAGE_UNPROVED, /* the driver refuses such images, or climport could not test them */
	IMAGE_ZERO_COPY,
	IMAGE_COPIES,
	IMAGE_FATAL, /* the driver crashed or hung */
	IMAGE_FOUNDS,
};

#define IMAGE_PIXELS 5 /* sizes of a pixel: 1, 2, 4, 8 and 16 bytes */

struct image_rule {
	enum image_found found;
	/* Of IMAGE_ZERO_COPY. */
	bool is_all;		    /* all images: those below are examples */
	unsigned int width, height; /* pixels: the largest */
	unsigned int accesses;	    /* 1 << host_rule_access() */
	unsigned int page_accesses; /* of them, those whose images begin at a page */
	unsigned int align;	    /* bytes: of the memory's address */
	/* Bytes: of the address, too, and of rows, with a gap behind or without.  0: no such pixels. */
	unsigned int unit[IMAGE_PIXELS];
};

/* An image to be made. */
struct image_shape {
	enum image_from from;
	bool is_2d;
	cl_mem_flags flags;
	const void *addr;	     /* the first byte of the buffer or, of a part, of the whole */
	size_t pixel;		     /* bytes: a power of two */
	size_t width, height, pitch; /* 1D: the height is 1 */
};

/**
 * image_rule_check - is such an image zero copy?
 * @rules: IMAGE_RULES of a device
 *
 * Returns CL_SUCCESS, or CL_INVALID_OPERATION, logged with the property that is outside the rule.
 */
cl_int image_rule_check(const struct image_rule *rules, const struct image_shape *image);

#endif /* ICD_FACTS_IMAGE_RULE_H */
