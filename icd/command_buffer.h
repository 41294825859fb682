/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_command_buffer: the forbidden calls when they are recorded, and the
 * imports that recorded kernels use.
 *
 * Its functions are found by address alone, and their parameters changed with
 * version 0.9.5, as the platform reports it.
 */
#ifndef ICD_COMMAND_BUFFER_H
#define ICD_COMMAND_BUFFER_H

#include <stdbool.h>

#include "cl_compat.h"

/* What a driver has.  Filled once for each platform, never freed. */
struct command_functions {
	cl_platform_id platform;
	void *create, *retain, *release, *enqueue, *remap, *ndrange_kernel;
	void *copy_buffer, *copy_buffer_rect, *copy_buffer_to_image, *copy_image,
		*copy_image_to_buffer;
	void *fill_buffer, *fill_image;
};

/* This layer's function of that name for programs of @platform, or NULL. */
void *command_buffer_function(cl_platform_id platform, const char *name);

/* The functions of the driver that made @buffer, or NULL if it is no command buffer. */
const struct command_functions *command_functions_of(cl_command_buffer_khr buffer);

/* Remembers that a command of @buffer uses these; NULL and objects without a bracket are skipped. */
cl_int command_buffer_use(cl_command_buffer_khr buffer, cl_mem first, cl_mem second);

/*
 * command_copy.c: this layer's recording function of that name, or NULL.
 * @properties: with the property list of 0.9.5
 */
void *command_copy_function(const char *name, bool properties);

#endif /* ICD_COMMAND_BUFFER_H */
