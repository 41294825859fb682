/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/context_missed.h"

#include <stdatomic.h>
#include <stddef.h>

#define MISSED 16 /* without memory there is no list to grow */

static _Atomic(cl_context) missed[MISSED]; /* NULL: free */
static atomic_uint missed_count;

void context_missed_add(cl_context handle)
{
	atomic_store(&missed[atomic_fetch_add(&missed_count, 1) % MISSED], handle);
}

void context_missed_remove(cl_context handle)
{
	if (!atomic_load_explicit(&missed_count, memory_order_relaxed))
		return;
	for (size_t i = 0; i < MISSED; i++) {
		cl_context expected = handle;

		atomic_compare_exchange_strong(&missed[i], &expected, NULL);
	}
}

bool context_missed_has(cl_context handle)
{
	for (size_t i = 0; handle && i < MISSED; i++)
		if (atomic_load(&missed[i]) == handle)
			return true;
	return false;
}
