/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method native: the driver has the extension for a type of memory, and the layer calls the
 * driver's function.  Types that the driver lacks are other methods' (ANGLE has dma-bufs alone).
 *
 * The rules are the driver's.  If the environment asks for a version of the extension, the layer
 * records the driver's imports on selected devices, and the rules of the version hold as well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/driver_info.h"
#include "icd/methods/image_create.h"
#include "icd/objects/device.h"
#include "icd/objects/method.h"

/*
 * A board with a PowerVR GPU answers for the device with four bytes of garbage, and for the platform
 * with the names.
 */
static bool native_platform_reports(const struct device *device, const char *name)
{
	char *extensions = platform_string(device->platform, CL_PLATFORM_EXTENSIONS);
	const bool reports = has_word(extensions, name);

	free(extensions);
	return reports;
}

static bool native_reports(const struct device *device, const char *name)
{
	if (has_word(device->extensions, name))
		return true;
	return !strstr(device->extensions, "cl_") && native_platform_reports(device, name);
}

static bool native_probe(struct device *device, enum import_type type, struct facts_type *answer)
{
	if (!native_reports(device, type_extension(type)))
		return false;
	answer->align = 1;
	snprintf(answer->why, sizeof(answer->why), "the driver reports %s itself",
		 type_extension(type));
	return true;
}

/* A driver may have Android's hardware buffers alone, or forget the common name. */
bool native_takes_others(const struct device *device)
{
	bool reports = native_reports(device, "cl_arm_import_memory");

	for (int type = 0; type < IMPORT_TYPES && !reports; type++)
		reports = native_reports(device, type_extension(type));
	return reports;
}

const struct method_ops method_native_ops = {
	.name = "native",
	.probe = native_probe,
	.create_image = image_create,
};
