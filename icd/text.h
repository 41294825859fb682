/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text on the heap, and hashes.  The stack is the caller's, and threads of 16 KiB are allowed: no frame of the
 * layer has an array for a path or a key.
 */
#ifndef ICD_TEXT_H
#define ICD_TEXT_H

#include <stddef.h>

/* As asprintf() does; the caller frees it.  NULL: no memory. */
__attribute__((format(printf, 1, 2))) char *text_create(const char *format, ...);

/* FNV-1a. */
unsigned long long text_hash_bytes(const void *bytes, size_t size);

/*
 * A hash for sums.  In a plain FNV hash the last character changes few bits, so changes of two
 * texts may cancel out in a sum.
 */
unsigned long long text_hash(const char *text);

#endif /* ICD_TEXT_H */
