/* SPDX-License-Identifier: Apache-2.0 */
#include "driver_time.h"

#include "import/cache/cache.h"

atomic_bool driver_time_passes;
atomic_uint driver_ages;

bool __real_cache_age(struct cache *cache);
bool __wrap_cache_age(struct cache *cache);

bool __wrap_cache_age(struct cache *cache)
{
	bool has_entries;

	if (!atomic_load(&driver_time_passes))
		return true;
	has_entries = __real_cache_age(cache);
	atomic_fetch_add(&driver_ages, 1);
	return has_entries;
}
