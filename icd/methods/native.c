/* SPDX-License-Identifier: Apache-2.0 */
/* The method native: the driver has the extension, and the layer calls the driver's function. */
#include <stdio.h>

#include "icd/methods/method.h"

static bool native_probe(const struct device *device, const char *extensions, enum import_type type,
			 struct method *method)
{
	(void)device;
	if (!has_word(extensions, type_extension(type)))
		return false;
	method->align = 1;
	snprintf(method->why, sizeof(method->why), "the driver reports %s itself",
		 type_extension(type));
	return true;
}

const struct method_ops method_native_ops = {
	.name = "native",
	.probe = native_probe,
};
