/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <stdint.h>

#include "import/log.h"

static const struct driver_ops *const rows[] = {
	&driver_native_ops,
	&driver_opaque_fd_ops,
	&driver_host_ptr_ops,
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

void driver_probe(struct device *device, const char *extensions)
{
	for (int type = 0; type < IMPORT_TYPES; type++) {
		struct way *way = &device->way[type];

		/* What cannot be tested here may be better than what comes after it. */
		for (size_t i = 0; i < ROWS && !way->ops && (device->may_compile || !way->untested);
		     i++)
			if (rows[i]->probe(device, extensions, type, way))
				way->ops = rows[i];
		log_debug("device %p, %s: %s: %s", (void *)device->id, type_extension(type),
			  way->ops ? way->ops->name : "refused", way->why);
	}
}
