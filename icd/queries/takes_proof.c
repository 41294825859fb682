/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/takes_proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/selection.h"
#include "icd/probe/interface.h"
#include "icd/queries/support.h"
#include "icd/selftest/selftest.h"

#define TAKES_LIMIT 10 /* seconds of a probe's tests */
#define TAKES_COMPILE_LIMIT 60
#define TAKES_PATIENCE_MS 2000

_Static_assert(TAKES_PATIENCE_MS > PROBE_PARTS_PATIENCE_MS, "an early answer comes too late");

/* The root devices of a platform. */
struct takes_devices {
	cl_device_id *id;
	cl_uint count;
};

static struct takes_devices takes_devices_get(cl_platform_id platform)
{
	struct takes_devices devices;

	devices.id = proof_devices(platform, &devices.count);
	if (devices.count > TAKES_MAX_DEVICES)
		devices.count = TAKES_MAX_DEVICES;
	return devices;
}

unsigned int takes_of_record(const struct device *device)
{
	unsigned int takes = 0;

	if (!device)
		return 0;
	for (int type = 0; type < IMPORT_TYPES; type++)
		if (device->method[type].ops)
			takes |= device->method[type].ops->create ? 1u << type : TAKES_NATIVE;
	if (device->method[IMPORT_HOST].ops && device->method[IMPORT_HOST].ops->create_image &&
	    !device->image2d_from_buffer)
		takes |= TAKES_IMAGE2D;
	return takes;
}

/*
 * A type that a method takes stays taken, though a part of the method, such as an exporter, could not be
 * tested at the moment.
 */
static bool takes_is_settled(const struct device *device)
{
	for (int type = 0; type < IMPORT_TYPES; type++)
		if (!device->method[type].ops &&
		    (device->method[type].untested || device->method[type].hangs))
			return false;
	return true;
}

/* @is_lasting: set to false for a result of the moment; else unchanged. */
static unsigned int takes_test_device(cl_device_id id, bool *is_lasting)
{
	const struct device *device = device_get(id);

	*is_lasting &= device && takes_is_settled(device);
	return takes_of_record(device);
}

static void takes_add(struct takes *t, unsigned int device, unsigned int takes)
{
	t->device[device] = (unsigned char)takes;
	t->platform |= takes & ~TAKES_DIED;
}

bool takes_test(cl_platform_id platform, struct takes *t)
{
	const struct takes_devices devices = takes_devices_get(platform);
	bool is_lasting = devices.id;

	t->platform = 0;
	t->count = devices.count;
	for (cl_uint i = 0; i < devices.count; i++)
		takes_add(t, i, takes_test_device(devices.id[i], &is_lasting));
	free(devices.id);
	return is_lasting;
}

/* A hung driver is not left hanging for ever: SIGALRM ends the probe. */
static void takes_set_alarm(const cl_device_id *devices, cl_uint count)
{
	unsigned int limit = TAKES_LIMIT;

	alarm(limit);
	for (cl_uint i = 0; i < count; i++)
		if (selftest_needs_compiler(devices[i]))
			limit = TAKES_COMPILE_LIMIT;
	alarm(limit);
}

/* The environment's choice needs no test of the other devices. */
static bool takes_is_part(cl_platform_id platform, cl_device_id device)
{
	char why[128];

	return selection_has(platform, device, why, sizeof(why));
}

/*
 * A test without a compiler takes a millisecond, and the start of a driver takes longer: more devices than
 * processes test at once have one process.
 */
static unsigned int takes_count_parts(cl_platform_id platform)
{
	const struct takes_devices devices = takes_devices_get(platform);
	unsigned int parts = 0;
	bool compiles = false;

	for (cl_uint i = 0; i < devices.count; i++) {
		if (!takes_is_part(platform, devices.id[i]))
			continue;
		parts++;
		compiles |= selftest_needs_compiler(devices.id[i]);
	}
	free(devices.id);
	return parts && (compiles || parts <= PROBE_AT_ONCE) ? parts : 1;
}

/* NULL: there is no such part. */
static cl_device_id takes_device_of_part(cl_platform_id platform, unsigned int part)
{
	const struct takes_devices devices = takes_devices_get(platform);
	cl_device_id found = NULL;

	for (cl_uint i = 0; i < devices.count && !found; i++)
		if (takes_is_part(platform, devices.id[i]) && !part--)
			found = devices.id[i];
	free(devices.id);
	return found;
}

static bool takes_run_part(cl_platform_id platform, unsigned int part, char *answer, size_t size)
{
	cl_device_id device = takes_device_of_part(platform, part);
	bool is_lasting = true;
	unsigned int takes;

	if (!device)
		return false;
	takes_set_alarm(&device, 1);
	takes = takes_test_device(device, &is_lasting);
	snprintf(answer, size, "%u%s", takes, is_lasting ? "" : (char[]){ PROBE_MOMENT, 0 });
	return true;
}

/* Takes a certain word from the list of words.  False: the next word is another. */
static bool takes_skip_word(const char **words, const char *word)
{
	const char *next_word = *words + strspn(*words, " ");
	const size_t length = strcspn(next_word, " ");

	if (length != strlen(word) || memcmp(next_word, word, length) != 0)
		return false;
	*words = next_word + length;
	return true;
}

/* Takes the answer of a part from the list of words.  False: the next word is no such answer. */
static bool takes_read_word(const char **words, unsigned int *takes, bool *is_lasting)
{
	char *end;

	*takes = 0;
	if (takes_skip_word(words, PROBE_LOST_WORD)) {
		*is_lasting = false;
		return true;
	}
	if (takes_skip_word(words, PROBE_DIED_WORD)) {
		*takes = TAKES_DIED;
		return true;
	}
	*takes = (unsigned int)strtoul(*words, &end, 10);
	if (end == *words || *takes > 255)
		return false;
	if (*end == PROBE_MOMENT) {
		*is_lasting = false;
		end++;
	}
	*words = end;
	return true;
}

/* @words: an answer for each part.  False: the parts are others in this process. */
static bool takes_join_parts(cl_platform_id platform, const char *words, struct takes *t,
			     bool *is_lasting)
{
	const struct takes_devices devices = takes_devices_get(platform);
	bool is_whole = devices.id;

	t->count = devices.count;
	for (cl_uint i = 0; i < devices.count && is_whole; i++) {
		unsigned int takes = 0;

		if (takes_is_part(platform, devices.id[i]))
			is_whole = takes_read_word(&words, &takes, is_lasting);
		else /* no test: the device keeps what the driver has */
			takes = takes_test_device(devices.id[i], is_lasting);
		takes_add(t, i, takes);
	}
	free(devices.id);
	return is_whole && !words[strspn(words, " ")];
}

static void takes_note(const char *key, const struct takes *t, bool is_lasting)
{
	if (is_lasting)
		takes_keep(key, t);
	else
		takes_note_moment(key, t);
}

static bool takes_run_joined(cl_platform_id platform, const char *words, char *answer, size_t size)
{
	bool lasting, is_lasting = true;
	char *key = takes_key(platform, &lasting);
	struct takes t = { .count = 0 };
	const bool is_whole = takes_join_parts(platform, words, &t, &is_lasting);

	if (is_whole && lasting)
		takes_note(key, &t, is_lasting);
	free(key);
	return is_whole && takes_format(&t, answer, size);
}

static bool takes_run_whole(cl_platform_id platform, char *answer, size_t size)
{
	const struct takes_devices devices = takes_devices_get(platform);
	bool lasting;
	char *key = takes_key(platform, &lasting);
	struct takes t = { .count = 0 };
	bool is_lasting;

	takes_set_alarm(devices.id, devices.count);
	is_lasting = takes_test(platform, &t);
	if (lasting)
		takes_note(key, &t, is_lasting);
	free(devices.id);
	free(key);
	return takes_format(&t, answer, size);
}

static bool takes_run_proof(cl_platform_id platform, const char *words, char *answer, size_t size)
{
	const size_t joined = strlen(PROBE_PARTS " ");
	unsigned int part;

	if (sscanf(words, PROBE_PART " %u", &part) == 1)
		return takes_run_part(platform, part, answer, size);
	if (!strncmp(words, PROBE_PARTS " ", joined))
		return takes_run_joined(platform, words + joined, answer, size);
	return takes_run_whole(platform, answer, size);
}

const struct proof takes_proof = {
	.name = "takes",
	.patience_ms = TAKES_PATIENCE_MS,
	.run = takes_run_proof,
	.count_parts = takes_count_parts,
};
