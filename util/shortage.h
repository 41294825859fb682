/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortages: of descriptors, of memory, and of room to pin memory, also within a user's limits.
 *
 * climport keeps some of these for later calls.  What climport keeps makes no call fail: a call that
 * meets a shortage has *givers* give kept things up, and is made again.
 */
#ifndef UTIL_SHORTAGE_H
#define UTIL_SHORTAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/shared.h"

/* Static storage. */
struct shortage_giver {
	bool (*give_up)(uint32_t count); /* kept things; false: nothing is kept */
	struct shortage_giver *next;	 /* shortage.c's, as all below */
	atomic_bool is_added;
};

/* For the process's life; does nothing if @giver was added before. */
void shortage_add_giver(struct shortage_giver *giver);

/* Whether a negative errno means a shortage. */
bool shortage_is(int err);

/*
 *	struct shortage_retry retry = { 0 };
 *
 *	do
 *		ret = make_descriptor();
 *	while (shortage_retry(&retry, ret));
 *
 * True if @err means a shortage, and kept things have been given up.
 */
struct shortage_retry {
	uint32_t given; /* at the last try */
};

bool shortage_retry(struct shortage_retry *retry, int err);

#endif
