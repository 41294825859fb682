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
#include "icd/selftest/job.h"
#include "icd/selftest/result_cache.h"
#include "icd/selftest/selftest.h"
#include "icd/text.h"
#include "util/lock.h"

#define REVISION 6 /* of the self-test: results of other revisions are not read */

struct coherency_record {
	struct coherency_record *next;
	cl_device_id device;
	unsigned int attempt; /* of the device, the last that tested */
	struct opaque_coherency coherency;
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

static void coherency_keep(const char *key, int found)
{
	char line[16];

	snprintf(line, sizeof(line), "%d", found);
	result_cache_set(key, line);
}

/* A process may hang for its limits. */
static void coherency_keep_hang(const char *key)
{
	char *limited = identity_add_limits(key);

	if (limited)
		coherency_keep(limited, COHERENCY_HANGS);
	free(limited);
}

/* Once a test ended late, a kept hang may be that test's. */
static bool coherency_is_hang_kept(const char *key)
{
	char *limited = identity_add_limits(key), line[16];
	bool is_recent = false;

	if (limited && !result_cache_get_recent(limited, line, sizeof(line), &is_recent))
		is_recent = false;
	free(limited);
	return is_recent && !job_late();
}

/* UNTESTED: nothing is kept. */
static enum tested coherency_find_kept(const char *key, enum coherency *found)
{
	char line[16];

	if (!result_cache_get(key, line, sizeof(line)))
		return coherency_is_hang_kept(key) ? HUNG : UNTESTED;
	*found = (enum coherency)atoi(line);
	return PASSED;
}

/*
 * Tests now.  A negative result is not kept: with a new library, or less load, the self-test may pass
 * tomorrow.  A hang costs each process its time, and is kept.
 */
static enum tested coherency_find_new(const char *key, const struct opaque_coherency *c,
				      unsigned int exporter, struct selftest_kept *kept,
				      enum coherency *found)
{
	const enum tested tested = coherency_test(c->device, c->uuid, exporter, kept, found);

	if (key && tested == PASSED && *found == COHERENT)
		coherency_keep(key, *found);
	if (key && tested == HUNG)
		coherency_keep_hang(key);
	return tested;
}

/* Kept, or tested now, unless @kept is NULL. */
static void coherency_find(struct opaque_coherency *c, unsigned int exporter,
			   struct selftest_kept *kept)
{
	char *key = coherency_key(c->device, c->uuid, exporter);
	enum coherency found = EXPORTS_NOTHING;
	enum tested tested = key ? coherency_find_kept(key, &found) : UNTESTED;

	if (tested == UNTESTED && kept)
		tested = coherency_find_new(key, c, exporter, kept, &found);
	free(key);
	c->is_known[exporter] = tested == PASSED;
	c->hangs[exporter] = tested == HUNG;
	if (tested == PASSED)
		c->of[exporter] = found;
}

static const char *coherency_describe(enum coherency coherency)
{
	switch (coherency) {
	case COHERENT:
		return "zero copy by self-test";
	case COPIES:
		return "copied";
	default:
		return "no descriptor";
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

static const char *coherency_describe_of(const struct opaque_coherency *c, int id)
{
	if (c->is_known[id])
		return coherency_describe(c->of[id]);
	return c->hangs[id] ? "the self-test did not end" : "untested";
}

static void coherency_explain_host(const struct opaque_coherency *c, char why[COHERENCY_WHY_SIZE])
{
	const char *semicolon = "";

	for (int i = IMPORT_EXPORTERS - 1; i >= 0; i--) {
		const struct import_exporter *exporter = import_exporter_get(i);

		coherency_append(why, "%s%s: %s", semicolon, exporter->memory,
				 coherency_describe_of(c, i));
		if (c->of[i] == COHERENT && exporter->has_device_memory && large_is_refused(c))
			coherency_append(why, ", on the device below %u MiB", LARGE_MIB);
		semicolon = "; ";
	}
}

static void coherency_explain_dmabuf(const struct opaque_coherency *c, char why[COHERENCY_WHY_SIZE])
{
	const char * or = "";

	coherency_append(why, "made of this process's memory, or mapped by the CPU: as host memory "
			      "by ");
	for (int i = IMPORT_EXPORTERS - 1; i >= 0; i--) {
		coherency_append(why, "%s%s (%s)", or, import_exporter_get(i)->name,
				 coherency_describe_of(c, i));
		or = " or ";
	}
}

/* Exporters of any pages come first in a sentence. */
void coherency_explain(const struct opaque_coherency *c, enum import_type type,
		       char why[COHERENCY_WHY_SIZE])
{
	*why = '\0';
	if (!c->has_uuid)
		coherency_append(why, "the device has no CL_DEVICE_UUID_KHR");
	else if (type == IMPORT_HOST)
		coherency_explain_host(c, why);
	else
		coherency_explain_dmabuf(c, why);
}

static uint64_t coherency_largest_buffer(cl_device_id device)
{
	cl_ulong bytes = 0;

	next.clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(bytes), &bytes, NULL);
	return bytes ? bytes : UINT64_MAX;
}

/* An unknown result says nothing against the known result of an earlier test or of another thread. */
static void coherency_merge(struct opaque_coherency *c, const struct opaque_coherency *other)
{
	for (unsigned int i = 0; i < IMPORT_EXPORTERS; i++)
		if (!c->is_known[i] && other->is_known[i]) {
			c->of[i] = other->of[i];
			c->is_known[i] = true;
			c->hangs[i] = false;
		}
}

bool coherency_hangs(const struct opaque_coherency *c)
{
	for (int i = 0; i < IMPORT_EXPORTERS; i++)
		if (c->hangs[i])
			return true;
	return false;
}

static bool coherency_is_complete(const struct opaque_coherency *c)
{
	for (int i = 0; i < IMPORT_EXPORTERS; i++)
		if (!c->is_known[i])
			return false;
	return true;
}

/* Behind a hang no other exporter is tested: each test would cost its time. */
static void coherency_find_all(const struct device *device, struct opaque_coherency *c)
{
	struct selftest_kept kept = { NULL };

	memset(c->hangs, 0, sizeof(c->hangs));
	for (unsigned int i = 0; i < IMPORT_EXPORTERS; i++) {
		const bool may_test = device->may_compile && !coherency_hangs(c);

		if (!c->is_known[i])
			coherency_find(c, i, may_test ? &kept : NULL);
	}
	coherency_drop(&kept);
}

/* False: the device has no UUID, or does not tell the UUID now. */
static bool coherency_begin(cl_device_id device, struct opaque_coherency *c, bool *is_conclusive)
{
	cl_int err;

	memset(c, 0, sizeof(*c));
	c->device = device;
	c->align = device_base_align(device);
	c->largest = coherency_largest_buffer(device);
	err = next.clGetDeviceInfo(device, CL_DEVICE_UUID_KHR, sizeof(c->uuid), c->uuid, NULL);
	c->has_uuid = !err;
	*is_conclusive = !selftest_is_transient(err);
	return c->has_uuid;
}

static struct coherency_record *coherency_record_of(cl_device_id device) REQUIRES(coherency_lock)
{
	struct coherency_record *record = coherency_records;

	while (record && record->device != device)
		record = record->next;
	return record;
}

/* False: the device was not tested yet.  @attempt: set to the device's last that tested. */
static bool coherency_recall(cl_device_id device, struct opaque_coherency *coherency,
			     unsigned int *attempt)
{
	const struct coherency_record *record;

	lock_acquire(&coherency_lock);
	record = coherency_record_of(device);
	if (record) {
		*coherency = record->coherency;
		*attempt = record->attempt;
	}
	lock_release(&coherency_lock);
	return record;
}

static void coherency_record_update(struct coherency_record *record, const struct device *device,
				    const struct opaque_coherency *coherency)
{
	record->coherency = *coherency;
	if (record->attempt < device->attempts)
		record->attempt = device->attempts;
}

/* Another thread may have tested at the same time: @coherency is set to what both have found. */
static void coherency_record(const struct device *device, struct opaque_coherency *coherency)
{
	struct coherency_record *mine = calloc(1, sizeof(*mine)), *record;

	lock_acquire(&coherency_lock);
	record = coherency_record_of(device->id);
	if (record) {
		coherency_merge(coherency, &record->coherency);
		coherency_record_update(record, device, coherency);
	} else if (mine) {
		mine->device = device->id;
		coherency_record_update(mine, device, coherency);
		mine->next = coherency_records;
		coherency_records = mine;
		mine = NULL;
	}
	lock_release(&coherency_lock);
	free(mine);
}

unsigned int coherency_exporters(const struct opaque_coherency *coherency)
{
	unsigned int exporters = 0;

	for (int i = 0; i < IMPORT_EXPORTERS; i++)
		if (coherency->of[i] == COHERENT)
			exporters |= 1u << i;
	return exporters;
}

bool coherency_get(const struct device *device, struct opaque_coherency *coherency)
{
	unsigned int attempt;
	const bool is_recalled = coherency_recall(device->id, coherency, &attempt);
	bool is_conclusive;

	if (is_recalled && !device->may_compile) /* whether a hang has ended, an import finds out */
		memset(coherency->hangs, 0, sizeof(coherency->hangs));
	if (is_recalled && (coherency_is_complete(coherency) || attempt >= device->attempts))
		return coherency_is_complete(coherency);
	if (!is_recalled && !coherency_begin(device->id, coherency, &is_conclusive))
		return is_conclusive;
	coherency_find_all(device, coherency);
	is_conclusive = coherency_is_complete(coherency);
	if (device->may_compile || is_conclusive)
		coherency_record(device, coherency);
	return is_conclusive;
}

/* An import is no time for a test: objects/device.c says when a device is tested again. */
void coherency_get_last(const struct device *device, struct opaque_coherency *coherency)
{
	unsigned int attempt;

	if (!coherency_recall(device->id, coherency, &attempt))
		coherency_get(device, coherency);
}
