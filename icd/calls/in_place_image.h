/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of in-place buffers, for programs that never asked for imports.  Where the method makes no images,
 * an image is made of the buffer's stage: access/staged.h.
 */
#ifndef ICD_CALLS_IN_PLACE_IMAGE_H
#define ICD_CALLS_IN_PLACE_IMAGE_H

#include "icd/methods/method.h"

/* @parent: an in-place buffer, or an image of one.  NULL: an error, logged. */
cl_mem in_place_image_create(const struct image_request *request, struct memobj *parent,
			     cl_int *err);

/*
 * Whether @image is a 1D image made of the in-place buffer @buffer, logged.  OpenCL has no copy between the two,
 * and the driver does not know that they are one memory.
 */
bool in_place_image_is_of(cl_mem image, cl_mem buffer);

/* The arguments of clEnqueueMapImage. */
struct in_place_image_call {
	cl_command_queue queue;
	cl_bool blocking;
	cl_map_flags flags;
	const size_t *origin, *region;
	size_t *row_pitch, *slice_pitch;
	cl_uint num_wait;
	const cl_event *wait;
	cl_event *event;
};

/*
 * A map of an image: the program's pointer, since the memory has what earlier commands wrote.  The driver
 * maps a pixel for reading.  The pointer ends with in_place_unmap().
 */
void *in_place_image_map(const struct memobj *image, const struct in_place_image_call *call,
			 cl_int *err);

#endif /* ICD_CALLS_IN_PLACE_IMAGE_H */
