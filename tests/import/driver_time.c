/* SPDX-License-Identifier: Apache-2.0 */
#include "driver_time.h"

#include "import/cache/cache.h"

atomic_bool driver_time_passes;

bool __real_cache_age(struct cache *cache);
bool __wrap_cache_age(struct cache *cache);

bool __wrap_cache_age(struct cache *cache)
{
	return atomic_load(&driver_time_passes) ? __real_cache_age(cache) : true;
}
