/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libclimport's functions have in common: arguments of callers, who may have been compiled with
 * another version of <CL/climport.h>, and the error for climport_last_error().
 *
 * The log keeps a thread's last fault (util/log.h), which the layer forgets at each of its calls.  So
 * a function of the library copies the sentence of its own error.
 */
#ifndef IMPORT_API_COMMON_H
#define IMPORT_API_COMMON_H

#include <stddef.h>
#include <stdint.h>

#define PUBLIC __attribute__((visibility("default")))

/* Bytes of a struct up to the end of @member. */
#define SIZE_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* -EINVAL, logged: a flag that is not @known, or a struct smaller than @least bytes. */
int climport_check_caller(uint64_t flags, uint64_t known, size_t out_size, size_t least);

/* -EINVAL, logged: neither CLIMPORT_HOST nor CLIMPORT_DEVICE. */
int climport_check_kind(unsigned int kind);

/* Writes the members that caller and library know, and 0 for members of a newer caller. */
void climport_fill(void *out, size_t out_size, const void *made, size_t size);

/* At the beginning of a function: a fault from here on is the function's. */
void climport_error_begin(void);

/* At the end.  Returns @ret, a negative errno or 0. */
int climport_error_end(int ret);

#endif
