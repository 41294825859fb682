/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/support.h"

#include <stdlib.h>
#include <string.h>

#include "icd/config.h"
#include "icd/layer.h"
#include "icd/objects/device.h"
#include "icd/probe/proof.h"
#include "icd/queries/asked.h"
#include "icd/queries/takes.h"
#include "icd/queries/takes_proof.h"
#include "icd/selftest/identity.h"
#include "util/log.h"
#include "util/restricted.h"
#include "util/thread.h"

static bool support_ask(cl_platform_id platform, const char *key, bool lasting, struct takes *t)
{
	char line[PROBE_LINE_SIZE];
	enum probe_end end;

	if (!lasting)
		log_debug("the driver's library is unknown: each process tests the platform again");
	end = proof_ask(platform, &takes_proof, "", line);
	if (end == PROBE_ANSWERED && takes_parse(line, t))
		return true;
	if (lasting && takes_get_kept(key, t)) /* at the last moment */
		return true;
	log_debug(
		"no probe process answers, so the platform's extension names are not reported: %s",
		line);
	if (lasting && (probe_blames_driver(end) || end == PROBE_NO_PLATFORM))
		takes_keep_unanswered(key, line);
	return false;
}

/* The answer must do without a file, a thread or a process. */
static bool support_is_restricted(void)
{
	return config_probe() == PROBE_DEFAULT && restricted_is_entered();
}

/* @key: NULL for an unknown platform. */
static bool support_find_by_key(cl_platform_id platform, const char *key, bool lasting,
				struct takes *t)
{
	const bool here = config_probe() == PROBE_HERE;

	if (!key && !here)
		return false;
	if (lasting && takes_get_kept(key, t))
		return true;
	if (identity_is_privileged())
		return false;
	if (!here)
		return !(lasting && takes_is_unanswered(key)) &&
		       support_ask(platform, key, lasting, t);
	if (takes_test(platform, t) && lasting)
		takes_keep(key, t);
	return true;
}

static bool support_find(cl_platform_id platform, struct takes *t)
{
	bool lasting, found;
	char *key;

	if (config_probe() == PROBE_OFF || support_is_restricted())
		return false;
	key = takes_key(platform, &lasting);
	found = support_find_by_key(platform, key, lasting, t);
	free(key);
	return found;
}

/*
 * If a thread is at work on the answer, the caller waits, for as long as the thread waits for a
 * probe.  A handler of fork() does not wait, and has no answer for now.
 */
static bool support_get(cl_platform_id platform, struct takes *t)
{
	bool answered;
	struct asked *a = asked_begin(platform, &answered, t);

	if (!a)
		return answered;
	memset(t, 0, sizeof(*t));
	answered = support_find(platform, t);
	asked_end(a, answered, t);
	return answered;
}

/* Threads in the function at once find equal answers. */
void support_prepare(cl_platform_id platform)
{
	struct takes t;
	bool is_kept;
	THREAD_NO_CANCEL();

	if (asked_has(platform) || config_probe() == PROBE_HERE || restricted_is_entered())
		return;
	is_kept = takes_recall(platform, &t);
	asked_note(platform, is_kept ? &t : NULL);
}

/* The results of the process itself, of a device query or an import. */
static unsigned int support_found(cl_platform_id platform)
{
	struct handle_cursor cursor = { 0 };
	const struct device *d;
	unsigned int takes = 0;

	while ((d = device_next(&cursor)))
		if (d->platform == platform)
			takes |= takes_of_record(d);
	return takes;
}

/* A driver with the extension for each type needs no test and no addition. */
static bool support_is_native(cl_platform_id platform)
{
	char *extensions = platform_string(platform, CL_PLATFORM_EXTENSIONS);
	bool is_native = extensions;

	for (int type = 0; type < IMPORT_TYPES; type++)
		is_native &= has_word(extensions, type_extension(type));
	free(extensions);
	return is_native;
}

unsigned int support_of_platform(cl_platform_id platform)
{
	struct takes t;
	THREAD_NO_CANCEL();

	if (support_is_native(platform))
		return TAKES_NATIVE;
	return support_get(platform, &t) ? t.platform : support_found(platform);
}

bool support_nothing(cl_platform_id platform)
{
	struct takes t;
	bool known;
	THREAD_NO_CANCEL();

	if (config_probe() == PROBE_HERE)
		return !support_of_platform(platform);
	known = asked_get(platform, &t);
	if (!known && !support_is_restricted())
		known = takes_recall(platform, &t);
	return known && !t.platform;
}

/* A probe's result for a device.  The probe knows a device by the number. */
static unsigned int support_of_number(cl_device_id id)
{
	cl_device_id root = device_root(id), *devices;
	cl_platform_id platform;
	unsigned int takes = 0;
	struct takes t;
	cl_uint count;

	if (next.clGetDeviceInfo(root, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL) ||
	    !support_get(platform, &t))
		return 0;
	devices = proof_devices(platform, &count);
	for (cl_uint i = 0; devices && i < count && i < t.count; i++)
		if (devices[i] == root)
			takes = t.device[i] & ~TAKES_DIED;
	free(devices);
	return takes;
}

unsigned int support_of_device(cl_device_id id)
{
	THREAD_NO_CANCEL();
	const struct device *device = device_known(id);

	if (!device && support_is_restricted())
		return support_of_number(id);
	device = device_get_quick(id);
	if (device)
		return takes_of_record(device);
	if (config_probe() == PROBE_HERE)
		return takes_of_record(device_get(id));
	return support_of_number(id);
}
