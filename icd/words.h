/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters that pass through in their places.
 *
 * A function may have different parameters in two versions of an extension, and an application has
 * a single address for both.  Each parameter is a pointer or an integer of at most a word, and
 * takes a register or a stack slot of its own on every ABI of Linux that OpenCL runs on.  So a
 * function that takes words and hands the words on in their places is right for both versions.  The
 * function takes as many words as the longer version has; if the application passed a word less,
 * the driver does not read the last word.
 */
#ifndef ICD_WORDS_H
#define ICD_WORDS_H

#include <stddef.h>
#include <stdint.h>

typedef uintptr_t word;

_Static_assert(sizeof(word) == sizeof(void *) && sizeof(word) >= sizeof(size_t),
	       "a pointer and a size are words");

#define WORDS_4 word a0, word a1, word a2, word a3
#define WORDS_12 WORDS_4, word a4, word a5, word a6, word a7, word a8, word a9, word a10, word a11
#define WORDS_16 WORDS_12, word a12, word a13, word a14, word a15

#define PASS_4 a0, a1, a2, a3
#define PASS_12 PASS_4, a4, a5, a6, a7, a8, a9, a10, a11
#define PASS_16 PASS_12, a12, a13, a14, a15

#endif /* ICD_WORDS_H */
