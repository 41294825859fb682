/* SPDX-License-Identifier: Apache-2.0 */
/* The driver has the extension for this type itself: it is simply called. */
#include <stdio.h>

#include "driver.h"

static bool native_probe(const struct device *device, const char *extensions, enum import_type type,
			 struct way *way)
{
	(void)device;
	if (!has_word(extensions, type_extension(type)))
		return false;
	way->align = 1;
	snprintf(way->why, sizeof(way->why), "the driver reports %s itself", type_extension(type));
	return true;
}

const struct driver_ops driver_native_ops = {
	.name = "native",
	.probe = native_probe,
};
