/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a caller, who may have been compiled with another version of <CL/climport.h>. */
#ifndef IMPORT_API_CALLER_H
#define IMPORT_API_CALLER_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a struct up to the end of @member. */
#define SIZE_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* -EINVAL, logged: a flag that is not @known, or a struct smaller than @least bytes. */
int climport_check_caller(uint64_t flags, uint64_t known, size_t out_size, size_t least);

/* -EINVAL, logged: neither CLIMPORT_HOST nor CLIMPORT_DEVICE. */
int climport_check_kind(unsigned int kind);

/* Writes the members that caller and library know, and 0 for members of a newer caller. */
void climport_fill(void *out, size_t out_size, const void *made, size_t size);

#endif
