/* SPDX-License-Identifier: Apache-2.0 */
#include "util/shortage.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

static _Atomic(shortage_give_up_fn) shortage_givers[SHORTAGE_GIVERS];

void shortage_add_giver(shortage_give_up_fn give_up)
{
	for (int i = 0; i < SHORTAGE_GIVERS; i++) {
		shortage_give_up_fn none = NULL;

		if (atomic_compare_exchange_strong(&shortage_givers[i], &none, give_up) ||
		    none == give_up)
			return;
	}
}

static bool shortage_give_up(uint32_t count)
{
	bool any = false;

	for (int i = 0; i < SHORTAGE_GIVERS; i++) {
		shortage_give_up_fn give_up = atomic_load(&shortage_givers[i]);

		any |= give_up && give_up(count);
	}
	return any;
}

bool shortage_is(int err)
{
	return err == -ENOMEM || err == -ENOSPC || err == -EMFILE || err == -ENFILE;
}

/* Gives up twice as many at each try: the last try gives up all. */
bool shortage_retry(struct shortage_retry *retry, int err)
{
	uint32_t count = retry->given ? 2 * retry->given : 1;

	if (!shortage_is(err) || !shortage_give_up(count))
		return false;
	retry->given = count;
	return true;
}
