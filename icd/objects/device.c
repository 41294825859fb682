/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/selection.h"
#include "icd/selftest/job.h"
#include "util/lock.h"
#include "util/log.h"

#define QUICK_ATTEMPTS 3 /* at once, to find out about a device */
#define FIRST_PATIENCE 1 /* seconds until the attempt behind these, and twice as long each time */
#define LARGEST_DOUBLINGS 11U /* half an hour */
#define HANG_PATIENCE 3600    /* seconds */
#define MAX_DEPTH 32	      /* of sub-devices */

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

/* What was proved is not tested again: a test may fail for want of something. */
static void device_keep_proofs(struct device *device, const struct device *older)
{
	for (int type = 0; type < IMPORT_TYPES; type++) {
		const struct method *method = &older->method[type];

		if (method->ops && !method->untested && !method->hangs)
			device->method[type] = *method;
	}
}

/*
 * A new result that is unknown says nothing against an older proof: of a method with several proofs
 * perhaps, or of another thread.
 */
static void device_keep_older(struct device *device, const struct device *older)
{
	for (int type = 0; type < IMPORT_TYPES; type++) {
		const struct method mine = device->method[type];

		if (mine.ops || !(mine.untested || mine.hangs) || !older->method[type].ops)
			continue;
		device->method[type] = older->method[type];
		device->method[type].untested = mine.untested;
		device->method[type].hangs = mine.hangs;
	}
}

/* @older: a record that is not conclusive, or NULL. */
static struct device *device_probe(cl_device_id id, bool may_compile, const struct device *older)
{
	struct device *device = calloc(1, sizeof(*device));
	char *extensions = device ? device_string(id, CL_DEVICE_EXTENSIONS) : NULL;

	if (!device)
		return NULL;
	device->id = id;
	device->may_compile = may_compile;
	device->attempts = (older ? older->attempts : 0) + may_compile;
	device->late = job_late();
	if (!extensions || next.clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof(device->platform),
						&device->platform, NULL)) {
		free(extensions);
		free(device);
		return NULL;
	}
	device->image2d_from_buffer = has_word(extensions, "cl_khr_image2d_from_buffer");
	device->base_align = device_base_align(id);
	device->is_selected =
		selection_has(device->platform, id, device->unselected, sizeof(device->unselected));
	if (older)
		device_keep_proofs(device, older);
	method_probe(device, extensions);
	free(extensions);
	return device;
}

static time_t device_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec;
}

static bool device_hangs(const struct device *device)
{
	for (int type = 0; type < IMPORT_TYPES; type++)
		if (device->method[type].hangs)
			return true;
	return false;
}

/* When a device is tested again that could not be tested.  A query is no attempt, and delays none. */
static time_t device_retry(const struct device *device, const struct device *older)
{
	unsigned int doublings = device->attempts - QUICK_ATTEMPTS;

	if (device_hangs(device))
		return device_clock() + HANG_PATIENCE;
	if (device->attempts < QUICK_ATTEMPTS)
		return 0;
	if (older && device->attempts == older->attempts)
		return device_hangs(older) ? 0 : older->retry;
	if (doublings > LARGEST_DOUBLINGS)
		doublings = LARGEST_DOUBLINGS;
	return device_clock() + ((time_t)FIRST_PATIENCE << doublings);
}

static bool device_is_tested(const struct device *device)
{
	for (int type = 0; type < IMPORT_TYPES; type++)
		if (device->method[type].untested)
			return false;
	return !device_hangs(device);
}

/*
 * A device that cannot be tested now is asked again by some imports at once, and then now and then: the
 * first times soon, since most shortages are short, and less often the longer a shortage lasts.
 * A driver that hangs gets no test at all meanwhile: the next test would hang for its time, too.
 */
static bool device_is_conclusive(const struct device *device, bool may_compile)
{
	if (device_is_tested(device))
		return true;
	if (device_hangs(device))
		return device->late == job_late() && device_clock() < device->retry;
	return device->attempts >= QUICK_ATTEMPTS &&
	       (!may_compile || device_clock() < device->retry);
}

/*
 * Two threads may probe a device at once, and make one attempt then; the first record without an unknown
 * result stays.
 */
static const struct device *device_publish(struct device *device)
{
	struct device *published;

	lock_acquire(&device_table.lock);
	published = handle_table_find(&device_table, device->id);
	if (!published || !device_is_tested(published)) {
		if (published)
			device_keep_older(device, published);
		if (published && published->attempts > device->attempts)
			device->attempts = published->attempts;
		device->older = published;
		device->retry = device_retry(device, published);
		if (handle_table_set(&device_table, device->id, device))
			published = device;
	}
	lock_release(&device_table.lock);
	if (published != device)
		free(device);
	return published;
}

const struct device *device_known(cl_device_id id)
{
	return handle_table_peek(&device_table, id);
}

const struct device *device_next(struct handle_cursor *cursor)
{
	return handle_table_next(&device_table, cursor);
}

/* A conclusive record, or a new record, whose self-tests may compile if @may_compile. */
static const struct device *device_find(cl_device_id id, bool may_compile)
{
	const struct device *known = device_known(id);
	struct device *device;
	cl_device_id root;

	if (!id || (known && device_is_conclusive(known, may_compile)))
		return known;
	root = device_root(id);
	known = device_known(root);
	if (known &&
	    (device_is_conclusive(known, may_compile) || (!may_compile && !known->may_compile)))
		return known;
	device = device_probe(root, may_compile, known);
	return device ? device_publish(device) : known;
}

const struct device *device_get(cl_device_id id)
{
	return device_find(id, true);
}

const struct device *device_get_last(cl_device_id id)
{
	const struct device *known = device_known(id);

	if (!known && id)
		known = device_known(device_root(id));
	return known ? known : device_get(id);
}

const struct device *device_get_quick(cl_device_id id)
{
	const struct device *device = device_find(id, false);

	return device && device_is_conclusive(device, false) ? device : NULL;
}
