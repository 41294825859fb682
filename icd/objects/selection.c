/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/config.h"
#include "icd/driver_info.h"
#include "icd/layer.h"

/* -1: the loader lists no such platform. */
static long selection_number_of_platform(cl_platform_id platform)
{
	cl_uint count = 0;
	cl_platform_id *list;
	long number = -1;

	if (next.clGetPlatformIDs(0, NULL, &count) || !count)
		return -1;
	list = calloc(count, sizeof(cl_platform_id));
	if (list && !next.clGetPlatformIDs(count, list, NULL))
		for (cl_uint i = 0; i < count; i++)
			number = list[i] == platform ? (long)i : number;
	free(list);
	return number;
}

static bool selection_is_number(const char *wanted)
{
	return *wanted && strspn(wanted, "0123456789") == strlen(wanted);
}

/* Takes @name, which may be NULL. */
static bool selection_name_has(char *name, const char *wanted)
{
	const bool has = name && strcasestr(name, wanted);

	free(name);
	return has;
}

static bool selection_has_platform(cl_platform_id platform, const char *wanted)
{
	if (selection_is_number(wanted))
		return strtol(wanted, NULL, 10) == selection_number_of_platform(platform);
	return selection_name_has(platform_string(platform, CL_PLATFORM_NAME), wanted);
}

static bool selection_has_device(cl_platform_id platform, cl_device_id device, const char *wanted)
{
	cl_uint count;

	if (selection_is_number(wanted))
		return strtol(wanted, NULL, 10) == device_place(platform, device, &count);
	return selection_name_has(device_string(device, CL_DEVICE_NAME), wanted);
}

bool selection_has(cl_platform_id platform, cl_device_id device, char *why, size_t size)
{
	const char *wanted = config_platform();

	if (wanted && !selection_has_platform(platform, wanted)) {
		snprintf(why, size, "CLIMPORT_PLATFORM=%.64s selects another platform", wanted);
		return false;
	}
	wanted = config_device();
	if (wanted && !selection_has_device(platform, device, wanted)) {
		snprintf(why, size, "CLIMPORT_DEVICE=%.64s selects another device", wanted);
		return false;
	}
	return true;
}
