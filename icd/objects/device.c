/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/config.h"
#include "icd/driver_info.h"
#include "icd/facts/store.h"
#include "icd/layer.h"
#include "icd/objects/method.h"
#include "icd/objects/selection.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/publish.h"

static HANDLE_TABLE_DEFINE(device_table, NULL); /* root device -> struct device, never removed */

/* The section of a device, by its number on the platform.  NULL: nothing is known, or the record is of other devices. */
static const struct facts *device_find_section(const struct facts_record *record,
					       cl_platform_id platform, cl_device_id root)
{
	char name[FACTS_NAME_SIZE];
	cl_uint count;
	const long number = device_place(platform, root, &count);

	if (number < 0 || count != record->count)
		return NULL;
	device_name_in_record(root, name);
	return strcmp(name, record->device[number].name) != 0 ? NULL : &record->device[number];
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
	const struct facts_record *record = facts_get(platform, wait, why);
	const struct facts *facts = record ? device_find_section(record, platform, root) : NULL;

	if (!record || facts)
		return facts;
	facts_forget(platform, record);
	record = facts_get(platform, wait, why);
	facts = record ? device_find_section(record, platform, root) : NULL;
	if (record && !facts)
		snprintf(why, FACTS_WHY_SIZE,
			 "climport-probe finds other devices than this process");
	return facts;
}

/* In this process, which may not survive. */
static void device_run_dangers(struct device *device)
{
	const struct method_danger *danger;

	while ((danger = method_danger(device, device->facts.begun))) {
		device->facts.begun++;
		danger->run(device, danger->image);
	}
}

static void device_fill(struct device *device, const char *extensions)
{
	char why[FACTS_WHY_SIZE] = "";
	const struct facts *facts = NULL;

	if (config_probe() == PROBE_HERE) {
		method_probe(device, extensions);
		device_run_dangers(device);
		return;
	}
	if (device->is_selected && !method_is_native(device, extensions))
		facts = device_facts(device->platform, device->id, FACTS_IMPORT, why);
	method_recall(device, extensions, facts, why);
}

/* What needs no test.  @extensions: the caller's. */
static struct device *device_create_untested(cl_device_id id, char **extensions)
{
	struct device *device = calloc(1, sizeof(*device));

	*extensions = device ? device_string(id, CL_DEVICE_EXTENSIONS) : NULL;
	if (!device)
		return NULL;
	device->id = id;
	if (!*extensions || next.clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof(device->platform),
						 &device->platform, NULL)) {
		free(*extensions);
		free(device);
		return NULL;
	}
	device->image2d_from_buffer = has_word(*extensions, "cl_khr_image2d_from_buffer");
	device->base_align = device_base_align(id);
	device->is_selected =
		selection_has(device->platform, id, device->unselected, sizeof(device->unselected));
	return device;
}

static struct device *device_create(cl_device_id id)
{
	char *extensions;
	struct device *device = device_create_untested(id, &extensions);

	if (!device)
		return NULL;
	device_fill(device, extensions);
	free(extensions);
	return device;
}

struct device *device_test(cl_device_id root, const struct facts *known)
{
	char *extensions;
	struct device *device = device_create_untested(root, &extensions);

	if (!device)
		return NULL;
	if (known)
		method_recall(device, extensions, known, "");
	else
		method_probe(device, extensions);
	free(extensions);
	return device;
}

static int device_count_unknown(const struct device *device)
{
	int count = 0;

	for (int type = 0; type < IMPORT_TYPES; type++)
		count += device->method[type].unknown;
	return count;
}

bool device_is_whole(const struct device *device)
{
	return !device_count_unknown(device);
}

/* Two threads may ask for a device at once: the first record of which most is known stays. */
static const struct device *device_publish(struct device *device)
{
	struct device *published;

	lock_acquire(&device_table.lock);
	published = handle_table_find(&device_table, device->id);
	if (!published || device_count_unknown(device) < device_count_unknown(published)) {
		device->older = published;
		if (handle_table_set(&device_table, device->id, device))
			published = device;
	}
	lock_release(&device_table.lock);
	if (published != device)
		free(device);
	return published;
}

/* The record of a root device; NULL if no thread has asked for the device. */
static const struct device *device_known(cl_device_id id)
{
	return handle_table_peek(&device_table, id);
}

const struct device *device_get(cl_device_id id)
{
	const struct device *known = device_known(id);
	struct device *device;
	cl_device_id root;

	if (!id || (known && device_is_whole(known)))
		return known;
	root = device_root(id);
	known = device_known(root);
	if (known && device_is_whole(known))
		return known;
	device = device_create(root);
	return device ? device_publish(device) : known;
}

const struct device *device_get_last(cl_device_id id)
{
	const struct device *known = device_known(id);

	if (!known && id)
		known = device_known(device_root(id));
	return known ? known : device_get(id);
}

/* In this process, with a record of its own.  NULL: there was no memory, or another shortage. */
static const struct facts *device_test_dangers(struct device *device)
{
	struct device *tested = malloc(sizeof(*tested));
	const struct facts *facts = NULL;

	if (!tested)
		return NULL;
	*tested = *device;
	tested->facts.is_unknown = false;
	method_expect_images(tested);
	device_run_dangers(tested);
	if (!tested->facts.is_unknown)
		facts = publish_first(&device->tested, &tested->facts);
	if (facts != &tested->facts)
		free(tested);
	return facts;
}

const struct facts *device_tested(cl_device_id id, char why[FACTS_WHY_SIZE])
{
	struct device *device = handle_table_peek(&device_table, id);
	const struct facts *facts;

	if (!device)
		device = handle_table_peek(&device_table, device_root(id));
	facts = device ? atomic_load(&device->tested) : NULL;
	snprintf(why, FACTS_WHY_SIZE, "no memory");
	if (facts || !device)
		return facts;
	if (config_probe() == PROBE_HERE)
		return device_test_dangers(device);
	facts = device_facts(device->platform, device->id, FACTS_IMAGE, why);
	if (facts && facts->is_unknown)
		snprintf(why, FACTS_WHY_SIZE, "%s",
			 *facts->ended ? facts->ended : "climport-probe had no memory");
	if (!facts || !(facts->has_images || facts->has_died))
		return NULL;
	if (!facts->is_unknown)
		atomic_store(&device->tested, (void *)facts);
	return facts;
}
