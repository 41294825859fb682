/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/config.h"
#include "icd/facts/store.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/selection.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/publish.h"

#define MAX_DEPTH 32 /* of sub-devices */

static HANDLE_TABLE_DEFINE(device_table, NULL); /* root device -> struct device, never removed */

bool has_word(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; at && (at = strstr(at, name)); at += length)
		if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

const char *type_extension(enum import_type type)
{
	static const char *const names[IMPORT_TYPES] = {
		[IMPORT_HOST] = "cl_arm_import_memory_host",
		[IMPORT_DMABUF] = "cl_arm_import_memory_dma_buf",
	};

	return names[type];
}

typedef cl_int (*info_fn)(void *object, cl_uint name, size_t size, void *value, size_t *length);

static cl_int device_ask(void *id, cl_uint name, size_t size, void *value, size_t *length)
{
	return next.clGetDeviceInfo(id, name, size, value, length);
}

static cl_int platform_ask(void *platform, cl_uint name, size_t size, void *value, size_t *length)
{
	return next.clGetPlatformInfo(platform, name, size, value, length);
}

static char *info_string(info_fn info, void *object, cl_uint name)
{
	size_t size;
	char *text;

	if (info(object, name, 0, NULL, &size))
		return NULL;
	text = calloc(1, size + 1);
	if (text && info(object, name, size, text, NULL)) {
		free(text);
		return NULL;
	}
	return text;
}

char *device_string(cl_device_id id, cl_device_info name)
{
	return info_string(device_ask, id, name);
}

char *platform_string(cl_platform_id platform, cl_platform_info name)
{
	return info_string(platform_ask, platform, name);
}

/* "OpenCL<space><major_version.minor_version><space><vendor-specific information>" */
cl_version device_version(cl_device_id id)
{
	char *text = device_string(id, CL_DEVICE_VERSION);
	unsigned int major = 1, minor = 0;

	if (!text)
		return 0;
	if (sscanf(text, "OpenCL %u.%u", &major, &minor) != 2)
		log_debug("device version \"%s\" is unknown and taken for 1.0", text);
	free(text);
	return CL_MAKE_VERSION(major, minor, 0);
}

/* OpenCL 1.0 and 1.1 drivers know no sub-devices and fail the query. */
static cl_device_id device_parent(cl_device_id id)
{
	cl_device_id parent = NULL;

	if (next.clGetDeviceInfo(id, CL_DEVICE_PARENT_DEVICE, sizeof(parent), &parent, NULL))
		return NULL;
	return parent == id ? NULL : parent;
}

/* A driver whose devices are each other's parents has no root: the device itself is taken. */
cl_device_id device_root(cl_device_id id)
{
	cl_device_id root = id, parent;

	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		parent = device_parent(root);
		if (!parent)
			return root;
		root = parent;
	}
	log_debug("device %p has no root device", (void *)id);
	return id;
}

size_t device_base_align(cl_device_id id)
{
	cl_uint bits = 0;

	next.clGetDeviceInfo(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, NULL);
	return bits > 8 ? bits / 8 : 1;
}

cl_device_id *device_list(cl_platform_id platform, cl_uint *count)
{
	cl_device_id *devices;

	*count = 0;
	if (next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, count) || !*count)
		return NULL;
	devices = calloc(*count, sizeof(*devices));
	if (devices && !next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, *count, devices, NULL))
		return devices;
	free(devices);
	*count = 0;
	return NULL;
}

/* The number of a root device on its platform, which is equal in climport-probe.  -1: none. */
static int device_place(cl_platform_id platform, cl_device_id root)
{
	cl_uint count;
	cl_device_id *devices = device_list(platform, &count);
	int number = -1;

	for (cl_uint i = 0; i < count && number < 0; i++)
		if (devices[i] == root)
			number = (int)i;
	free(devices);
	return number;
}

/* The section of a device, by its number on the platform.  NULL: nothing is known, or the record is of other devices. */
static const struct facts *device_find_section(const struct facts_record *record,
					       cl_platform_id platform, cl_device_id root)
{
	char name[FACTS_NAME_SIZE];
	cl_uint count = 0;
	const int number = device_place(platform, root);

	if (next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count) || number < 0 ||
	    count != record->count)
		return NULL;
	device_name_in_record(root, name);
	return strcmp(name, record->device[number].name) != 0 ? NULL : &record->device[number];
}

void device_name_in_record(cl_device_id root, char name[FACTS_NAME_SIZE])
{
	char *device = device_string(root, CL_DEVICE_NAME),
	     *driver = device_string(root, CL_DRIVER_VERSION);

	facts_set_name(name, device, driver);
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
	facts_forget(platform);
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
static const struct image_rule *device_test_images(struct device *device)
{
	struct device *tested = malloc(sizeof(*tested));
	struct image_rule *mine = malloc(sizeof(device->facts.images)), *rules = NULL;

	if (mine && tested) {
		*tested = *device;
		tested->facts.is_best = true;
		method_expect_images(tested);
		device_run_dangers(tested);
		memcpy(mine, tested->facts.images, sizeof(tested->facts.images));
		if (tested->facts.is_best)
			rules = publish_first(&device->images, mine);
	}
	free(tested);
	if (rules != mine)
		free(mine);
	return rules;
}

const struct image_rule *device_images(cl_device_id id, char why[FACTS_WHY_SIZE])
{
	struct device *device = handle_table_peek(&device_table, id);
	const struct image_rule *rules;
	const struct facts *facts;

	if (!device)
		device = handle_table_peek(&device_table, device_root(id));
	rules = device ? atomic_load(&device->images) : NULL;
	snprintf(why, FACTS_WHY_SIZE, "no memory");
	if (rules || !device)
		return rules;
	if (config_probe() == PROBE_HERE)
		return device_test_images(device);
	facts = device_facts(device->platform, device->id, FACTS_IMAGE, why);
	if (!facts || !facts->has_images)
		return NULL;
	atomic_store(&device->images, (void *)facts->images);
	return facts->images;
}
