/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Words of the status page.  Arithmetic only, also compiled in user space by
 * tests/kmod/test_units.c.
 *
 * A word that is even and not 0 is the generation of a current watch.  The lowest bit is set when
 * the watch is stale or has ended.  A slot has each generation once, so no word ever repeats the
 * generation of an earlier watch.
 */
#ifndef GDMABUF_CORE_SLOT_H
#define GDMABUF_CORE_SLOT_H

#include <linux/types.h>

/* The word once @generation is over. */
static inline u32 slot_word_over(u32 generation)
{
	return generation | 1;
}

/* The generation after all that led to @word.  0: none is left, and the slot is used no more. */
static inline u32 slot_word_next(u32 word)
{
	return (word | 1) + 1;
}

#endif
