/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of OpenCL's numbers, for sentences: "CL_INVALID_OPERATION", not "error -59".
 *
 * A number without a name stays a number: "the unknown error -9999" (NVIDIA's driver returns such),
 * "channel order 0x10ff", "0x7ead".  That text is in the caller's frame, and lives as long as the
 * caller's block.
 */
#ifndef UTIL_CL_NAMES_H
#define UTIL_CL_NAMES_H

#include "util/shared.h"

#include <stdint.h>

#define CL_NAME_SIZE 48		/* bytes of one name */
#define CL_FLAGS_NAMES_SIZE 128 /* bytes of several; what is longer ends in "..." */

/* A cl_int. */
#define cl_error_name(error) cl_name_error(error, (char[CL_NAME_SIZE]){ 0 })

/* The same, or NULL. */
const char *cl_error_known(int error);

/* A property of clImportMemoryARM, or a value of CL_IMPORT_TYPE_ARM. */
#define cl_import_name(number) cl_name_import(number, (char[CL_NAME_SIZE]){ 0 })

/* cl_mem_flags: "CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS"; "0". */
#define cl_mem_flags_names(flags) cl_name_mem_flags(flags, (char[CL_FLAGS_NAMES_SIZE]){ 0 })

/* The two numbers of a cl_image_format. */
#define cl_channel_order_name(order) cl_name_channel_order(order, (char[CL_NAME_SIZE]){ 0 })
#define cl_channel_type_name(type) cl_name_channel_type(type, (char[CL_NAME_SIZE]){ 0 })

/* Each returns a constant, or @text. */
const char *cl_name_error(int error, char text[CL_NAME_SIZE]);
const char *cl_name_import(intptr_t number, char text[CL_NAME_SIZE]);
const char *cl_name_mem_flags(uint64_t flags, char text[CL_FLAGS_NAMES_SIZE]);
const char *cl_name_channel_order(unsigned int order, char text[CL_NAME_SIZE]);
const char *cl_name_channel_type(unsigned int type, char text[CL_NAME_SIZE]);

#endif /* UTIL_CL_NAMES_H */
