/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/driver_info.h"
#include "icd/facts/store.h"
#include "icd/layer.h"
#include "icd/objects/method.h"
#include "util/lock.h"

static HANDLE_TABLE_DEFINE(device_table, NULL); /* root device -> struct device, never removed */

/* The section of a device, by its number on the platform.  NULL: the record is of other devices. */
static const struct facts *device_find_section(const struct facts_record *record,
					       cl_platform_id platform, cl_device_id root)
{
	const struct facts *section = NULL;
	char name[FACTS_NAME_SIZE];
	cl_uint count;
	cl_device_id *devices = device_list(platform, &count);

	device_name_in_record(root, name);
	for (cl_uint i = 0; i < count && count == record->count; i++)
		if (devices[i] == root && !strcmp(name, record->device[i].name))
			section = &record->device[i];
	free(devices);
	return section;
}

void device_name_in_record(cl_device_id root, char name[FACTS_NAME_SIZE])
{
	char *device = device_string(root, CL_DEVICE_NAME),
	     *driver = device_string(root, CL_DRIVER_VERSION);

	snprintf(name, FACTS_NAME_SIZE, "%.64s, driver %s", device ? device : "",
		 driver ? driver : "");
	free(device);
	free(driver);
}

/* Other devices, or another driver, may have come in the place of those that were tested. */
const struct facts *device_facts(cl_platform_id platform, cl_device_id root, enum facts_wait wait,
				 char why[FACTS_WHY_SIZE])
{
	for (int i = 0; i < 2; i++) {
		const struct facts_record *record = facts_get(platform, wait, why);
		const struct facts *facts = record ? device_find_section(record, platform, root)
						   : NULL;

		if (!record || facts)
			return facts;
		facts_forget(platform, record);
	}
	snprintf(why, FACTS_WHY_SIZE, "climport-probe finds other devices than this process");
	return NULL;
}

void device_free(struct device *device)
{
	if (device)
		free(device->extensions);
	free(device);
}

struct device *device_create(cl_device_id id)
{
	struct device *device = calloc(1, sizeof(*device));

	if (!device)
		return NULL;
	device->id = id;
	device->extensions = device_string(id, CL_DEVICE_EXTENSIONS);
	device->has_uuid =
		!next.clGetDeviceInfo(id, CL_DEVICE_UUID_KHR, IMPORT_UUID_SIZE, device->uuid, NULL);
	if (!device->extensions ||
	    next.clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof(device->platform),
				 &device->platform, NULL)) {
		device_free(device);
		return NULL;
	}
	device->image2d_from_buffer = has_word(device->extensions, "cl_khr_image2d_from_buffer");
	device->base_align = device_base_align(id);
	device_name_in_record(id, device->facts.name);
	return device;
}

bool device_is_unknown(const struct device *device, enum import_type type)
{
	return !device->ops[type] && device->facts.is_unknown;
}

bool device_is_whole(const struct device *device)
{
	for (int type = 0; type < IMPORT_TYPES; type++)
		if (device_is_unknown(device, (enum import_type)type))
			return false;
	return true;
}

static bool device_has_images(const struct device *device)
{
	return device->facts.has_images && !device->facts.is_unknown;
}

static bool device_is_enough(const struct device *device, enum facts_wait wait)
{
	return (wait < FACTS_IMPORT || device_is_whole(device)) &&
	       (wait < FACTS_IMAGE || device_has_images(device));
}

static int device_count_known(const struct device *device)
{
	int count = device_has_images(device);

	for (int type = 0; type < IMPORT_TYPES; type++)
		count += !device_is_unknown(device, (enum import_type)type);
	return count;
}

/* Two threads may ask for a device at once: the first record of which most is known stays. */
static const struct device *device_publish(struct device *device)
{
	struct device *published;

	lock_acquire(&device_table.lock);
	published = handle_table_peek(&device_table, device->id);
	if (!published || device_count_known(device) > device_count_known(published)) {
		device->older = published;
		if (handle_table_set(&device_table, device->id, device))
			published = device;
	}
	lock_release(&device_table.lock);
	if (published != device)
		device_free(device);
	return published;
}

static const struct device *device_find(cl_device_id id, enum facts_wait wait,
					char why[FACTS_WHY_SIZE])
{
	const struct device *known = handle_table_peek(&device_table, id);
	struct device *device;
	cl_device_id root = id;

	if (!known && id) {
		root = device_root(id);
		known = handle_table_peek(&device_table, root);
	}
	if (!id || (known && device_is_enough(known, wait)))
		return known;
	snprintf(why, FACTS_WHY_SIZE, "no memory");
	device = device_create(root);
	if (!device)
		return known;
	if (wait < FACTS_IMPORT)
		wait = FACTS_IMPORT;
	if (!method_take_native(device)) /* what the driver takes itself needs no record */
		method_recall(device, device_facts(device->platform, root, wait, why), why);
	return device_publish(device);
}

const struct device *device_get(cl_device_id id, enum facts_wait wait)
{
	char why[FACTS_WHY_SIZE];

	return device_find(id, wait, why);
}

const struct facts *device_tested(cl_device_id id, char why[FACTS_WHY_SIZE])
{
	const struct device *device = device_find(id, FACTS_IMAGE, why);

	return device && device_has_images(device) ? &device->facts : NULL;
}
