/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-place buffers: buffers that a program creates with CL_MEM_USE_HOST_PTR, and that the layer has
 * made imports (calls/create_buffer.c).  Sub-buffers of such buffers are in-place buffers, too.
 *
 * The program never heard of imports.  So the record has what the program expects of a buffer with a
 * host pointer, and the driver's object does not have.
 */
#ifndef ICD_OBJECTS_IN_PLACE_H
#define ICD_OBJECTS_IN_PLACE_H

#include <stdbool.h>

#include "icd/cl_compat.h"

struct in_place;

/*
 * @flags: for clGetMemObjectInfo
 * @has_properties: the program gave a list of properties, which is empty
 *
 * NULL: no memory, or too many buffers, logged.
 */
struct in_place *in_place_create(cl_mem_flags flags, bool has_properties);

/*
 * The record of a sub-buffer or image, whose memory is the buffer's.  Other records count: the driver's object of
 * each has a descriptor of the process, and the program's own descriptors come first.  So
 * in_place_create() fails, logged, once the live buffers have a quarter of the descriptors.
 */
struct in_place *in_place_create_part(cl_mem_flags flags, bool has_properties);

/* @in_place may be NULL. */
void in_place_free(struct in_place *in_place);

cl_mem_flags in_place_flags(const struct in_place *in_place);
bool in_place_has_properties(const struct in_place *in_place);

/* The flags of the driver's object. */
cl_mem_flags in_place_driver_flags(cl_mem_flags flags);

/*
 * A stage: a buffer of the driver's in device memory, of which the driver makes images, since the driver
 * makes no usable images of imports.  Commands on such images copy the in-place buffer to the stage and
 * back (access/staged.h).
 *
 * @source: the driver's object of the in-place buffer, held until in_place_free()
 *
 * Returns the stage, made by the first call; or NULL with an error, logged.
 */
cl_mem in_place_get_stage(struct in_place *in_place, cl_context context, cl_mem source,
			  cl_int *err);

/* No image was made.  The stage ends if no other image uses the stage. */
void in_place_put_stage(struct in_place *in_place);

/* The stage that there is, and its size. */
cl_mem in_place_stage(const struct in_place *in_place, size_t *size);

/* A map of the buffer, of which the driver does not know. */
struct in_place_map;

/* NULL: no memory, logged.  Ends with in_place_map_free(), or in_place_map_add(). */
struct in_place_map *in_place_map_create(void *pointer);
void in_place_map_free(struct in_place_map *map);

/* The program has the pointer. */
void in_place_map_add(struct in_place *in_place, struct in_place_map *map);

cl_uint in_place_map_count(const struct in_place *in_place);

/* The last map with the pointer, which the caller then owns; NULL: there is none. */
struct in_place_map *in_place_map_take(struct in_place *in_place, const void *pointer);

#endif /* ICD_OBJECTS_IN_PLACE_H */
