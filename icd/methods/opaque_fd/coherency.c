/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/opaque_fd/coherency.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/layer.h"
#include "icd/methods/opaque_fd/coherency_test.h"
#include "icd/methods/opaque_fd/large.h"
#include "icd/objects/device.h"
#include "icd/selftest/identity.h"
#include "icd/selftest/result_cache.h"
#include "icd/selftest/selftest.h"
#include "icd/text.h"
#include "util/lock.h"

#define REVISION 4 /* of the self-test: results of other revisions are not read */

struct coherency_record {
	struct coherency_record *next;
	cl_device_id device;
	struct opaque_coherency coherency;
	bool is_conclusive;
};

LOCK_DEFINE(coherency_lock, LOCK_LAST); /* the list */
static struct coherency_record *coherency_records GUARDED_BY(coherency_lock);

static cl_platform_id coherency_platform(cl_device_id device)
{
	cl_platform_id platform = NULL;

	next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL);
	return platform;
}

/* NULL: nothing can be kept. */
static char *coherency_key(cl_device_id device, const unsigned char *uuid, unsigned int exporter)
{
	char text[2 * IMPORT_UUID_SIZE + 1], *identity, *key;

	for (size_t i = 0; i < IMPORT_UUID_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", uuid[i]);
	identity = identity_device(device, coherency_platform(device));
	key = identity ? text_create("opaque_fd %d by %s, %s, %s", REVISION,
				     import_exporter_get(exporter)->name, text, identity)
		       : NULL;
	free(identity);
	return key;
}

static void coherency_keep(const char *key, enum coherency found)
{
	char line[16];

	snprintf(line, sizeof(line), "%d", found);
	result_cache_set(key, line);
}

/*
 * Kept, or tested now, unless @kept is NULL.  A negative result is not kept: with a new library, or less load, the
 * self-test may pass tomorrow.
 */
static bool coherency_find(cl_device_id device, const unsigned char *uuid, unsigned int exporter,
			   struct selftest_kept *kept, enum coherency *found)
{
	char *key = coherency_key(device, uuid, exporter), line[16];
	bool is_known = key && result_cache_get(key, line, sizeof(line));

	if (is_known) {
		*found = (enum coherency)atoi(line);
	} else if (kept) {
		is_known = coherency_test(device, uuid, exporter, kept, found);
		if (key && is_known && *found > COPIES)
			coherency_keep(key, *found);
	}
	free(key);
	return is_known;
}

static const char *coherency_describe(enum coherency coherency)
{
	switch (coherency) {
	case COHERENT:
		return "zero copy by self-test";
	case NEEDS_INVALIDATE:
		return "zero copy by self-test, caches invalidated before kernels";
	case COPIES:
		return "copied";
	default:
		return "none";
	}
}

static void coherency_append(char why[COHERENCY_WHY_SIZE], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void coherency_append(char why[COHERENCY_WHY_SIZE], const char *format, ...)
{
	size_t used = strlen(why);
	va_list args;

	va_start(args, format);
	vsnprintf(why + used, COHERENCY_WHY_SIZE - used, format, args);
	va_end(args);
}

/* Exporters of any pages come first in a sentence. */
static void coherency_explain(struct opaque_coherency *c)
{
	char *host = c->why[IMPORT_HOST], *dmabuf = c->why[IMPORT_DMABUF];
	const char *semicolon = "", * or = "";

	coherency_append(dmabuf, "made of this process's memory, or mapped by the CPU: as host "
				 "memory by ");
	for (int i = IMPORT_EXPORTERS - 1; i >= 0; i--) {
		const struct import_exporter *exporter = import_exporter_get(i);
		const char *result = coherency_describe(c->of[i]);

		if (!c->is_asked[i])
			continue;
		coherency_append(host, "%s%s: %s", semicolon, exporter->memory, result);
		if (c->of[i] > COPIES && exporter->has_device_memory && large_is_refused(c))
			coherency_append(host, ", on the device below %u MiB", LARGE_MIB);
		coherency_append(dmabuf, "%s%s (%s)", or, exporter->name, result);
		semicolon = "; ";
		or = " or ";
	}
}

static uint64_t coherency_largest_buffer(cl_device_id device)
{
	cl_ulong bytes = 0;

	next.clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(bytes), &bytes, NULL);
	return bytes ? bytes : UINT64_MAX;
}

/* An exporter that stands behind another is asked where the other does not work. */
static bool coherency_is_needed(const struct opaque_coherency *c, unsigned int id)
{
	const unsigned int unless = import_exporter_get(id)->unless;

	return import_exporter_is_allowed(id) && (unless == id || c->of[unless] != COHERENT);
}

static bool coherency_find_all(cl_device_id device, bool may_compile, struct opaque_coherency *c)
{
	struct selftest_kept kept = { NULL };
	bool is_conclusive = true;

	memset(c, 0, sizeof(*c));
	c->device = device;
	c->align = device_base_align(device);
	c->largest = coherency_largest_buffer(device);
	if (next.clGetDeviceInfo(device, CL_DEVICE_UUID_KHR, sizeof(c->uuid), c->uuid, NULL)) {
		for (int type = 0; type < IMPORT_TYPES; type++)
			snprintf(c->why[type], sizeof(c->why[type]),
				 "the device has no CL_DEVICE_UUID_KHR");
		return true;
	}
	for (int i = 0; i < IMPORT_EXPORTERS; i++) {
		c->is_asked[i] = coherency_is_needed(c, i);
		if (!c->is_asked[i] ||
		    coherency_find(device, c->uuid, i, may_compile ? &kept : NULL, &c->of[i]))
			continue;
		is_conclusive = false;
		c->of[i] = EXPORTS_NOTHING;
	}
	coherency_drop(&kept);
	coherency_explain(c);
	return is_conclusive;
}

static struct coherency_record *coherency_record_of(cl_device_id device) REQUIRES(coherency_lock)
{
	struct coherency_record *record = coherency_records;

	while (record && record->device != device)
		record = record->next;
	return record;
}

/* False: the device was not tested yet.  @is_conclusive: whether no exporter's result is unknown. */
static bool coherency_recall(cl_device_id device, struct opaque_coherency *coherency,
			     bool *is_conclusive)
{
	const struct coherency_record *record;

	lock_acquire(&coherency_lock);
	record = coherency_record_of(device);
	if (record) {
		*coherency = record->coherency;
		*is_conclusive = record->is_conclusive;
	}
	lock_release(&coherency_lock);
	return record;
}

/* A record of another thread's test at the same time is as good, unless that was not conclusive. */
static void coherency_record(cl_device_id device, const struct opaque_coherency *coherency,
			     bool is_conclusive)
{
	struct coherency_record *mine = calloc(1, sizeof(*mine)), *record;

	lock_acquire(&coherency_lock);
	record = coherency_record_of(device);
	if (!record && mine) {
		mine->device = device;
		mine->next = coherency_records;
		record = coherency_records = mine;
		mine = NULL;
	}
	if (record && !record->is_conclusive) {
		record->coherency = *coherency;
		record->is_conclusive = is_conclusive;
	}
	lock_release(&coherency_lock);
	free(mine);
}

unsigned int coherency_exporters(const struct opaque_coherency *coherency)
{
	unsigned int exporters = 0;

	for (int i = 0; i < IMPORT_EXPORTERS; i++)
		if (coherency->of[i] >= NEEDS_INVALIDATE)
			exporters |= 1u << i;
	return exporters;
}

bool coherency_get(cl_device_id device, bool may_compile, struct opaque_coherency *coherency)
{
	bool is_conclusive;

	if (coherency_recall(device, coherency, &is_conclusive) && is_conclusive)
		return true;
	is_conclusive = coherency_find_all(device, may_compile, coherency);
	if (may_compile || is_conclusive)
		coherency_record(device, coherency, is_conclusive);
	return is_conclusive;
}

/* An import is no time for a test: objects/device.c says when a device is tested again. */
void coherency_get_last(cl_device_id device, struct opaque_coherency *coherency)
{
	bool is_conclusive;

	if (!coherency_recall(device, coherency, &is_conclusive))
		coherency_get(device, true, coherency);
}
