/* SPDX-License-Identifier: Apache-2.0 */
#include "util/shortage.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

/* The giver that was added last.  No giver is taken out. */
static _Atomic(struct shortage_giver *) shortage_givers;

void shortage_add_giver(struct shortage_giver *giver)
{
	struct shortage_giver *first;

	if (atomic_load(&giver->is_added) || atomic_exchange(&giver->is_added, true))
		return;
	first = atomic_load(&shortage_givers);
	do
		giver->next = first;
	while (!atomic_compare_exchange_weak(&shortage_givers, &first, giver));
}

static bool shortage_give_up(uint32_t count)
{
	bool any = false;

	for (struct shortage_giver *g = atomic_load(&shortage_givers); g; g = g->next)
		any |= g->give_up(count);
	return any;
}

bool shortage_is(int err)
{
	return err == -ENOMEM || err == -ENOSPC || err == -EDQUOT || err == -EMFILE ||
	       err == -ENFILE;
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
