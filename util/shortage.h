/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortages: of descriptors, of memory, and of room to pin memory.
 *
 * climport keeps some of these for later calls.  What climport keeps makes no call fail: a call that
 * meets a shortage has *givers* give kept things up, and is made again.
 */
#ifndef UTIL_SHORTAGE_H
#define UTIL_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/shared.h"

/*
 * @give_up gives @count kept things up; false: nothing is kept.  SHORTAGE_GIVERS functions for the
 * process; a function counts once.
 */
#define SHORTAGE_GIVERS 3
typedef bool (*shortage_give_up_fn)(uint32_t count);
void shortage_add_giver(shortage_give_up_fn give_up);

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
