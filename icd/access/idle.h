/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that looks every millisecond, or less often, for what idles, while there is something
 * to look for.
 *
 * It calls drivers, which may block in an enqueue until commands before are done; those may wait
 * for import/'s worker, so it is another thread.
 */
#ifndef ICD_ACCESS_IDLE_H
#define ICD_ACCESS_IDLE_H

#include <stdbool.h>

#include "util/list.h"

/* What is to be looked for: static storage. */
struct idle_watcher {
	bool (*tick)(void); /* returns whether it is to be called again */
	unsigned int period_ms;
	bool watching;	  /* idle.c's, as the next */
	long long due;	  /* milliseconds */
	struct list link; /* next is NULL before the first idle_watch() */
};

/**
 * idle_watch - have a watcher's tick called on the idle thread
 *
 * The first call comes within its period, and none any more once the process exits.
 *
 * Returns false, logged once, if there is no such thread.
 */
bool idle_watch(struct idle_watcher *watcher);

#endif /* ICD_ACCESS_IDLE_H */
