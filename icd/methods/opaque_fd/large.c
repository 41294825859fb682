/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts for the process: a record for each device. */
#include "icd/methods/opaque_fd/large.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "icd/layer.h"
#include "icd/methods/opaque_fd/large_test.h"
#include "icd/probe/question.h"
#include "util/log.h"
#include "util/publish.h"
#include "util/thread.h"

#define LARGE_WORDS_SIZE (2 * IMPORT_UUID_SIZE + 1)
#define LARGE_KEY_SIZE 48
#define LARGE_PATIENCE_MS 65000 /* more than a probe process has */
#define LARGE_PAUSE 600 /* seconds without another probe process, after one without an answer */

struct large_result {
	enum verdict verdict;
	char why[VERDICT_WHY_SIZE];
};

/* A record never changes, and stays in the list. */
struct large_record {
	struct published published; /* first */
	cl_device_id device;
	time_t until; /* 0: for ever */
	struct large_result result;
};

static_assert(sizeof(struct large_result) <= QUESTION_ANSWER_SIZE, "an answer to a question");

static struct publish_list large_records;

static time_t large_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec;
}

static bool large_record_holds(const void *object, const void *device)
{
	const struct large_record *r = object;

	return r->device == device && (!r->until || large_clock() < r->until);
}

static bool large_recall(cl_device_id device, struct large_result *result)
{
	const struct large_record *r = publish_find(&large_records, large_record_holds, device);

	if (r)
		*result = r->result;
	return r;
}

/* Not noted: what the driver has survived, and may take when there is more memory. */
static void large_note(cl_device_id device, const struct large_result *result)
{
	struct large_record *r = result->verdict == VERDICT_UNKNOWN ? NULL : malloc(sizeof(*r));

	if (!r)
		return;
	r->device = device;
	r->until = result->verdict == VERDICT_UNANSWERED ? large_clock() + LARGE_PAUSE : 0;
	r->result = *result;
	if (publish_add(&large_records, r, large_record_holds, device) != r)
		free(r);
}

static void large_format_uuid(const unsigned char *uuid, char text[LARGE_WORDS_SIZE])
{
	for (size_t i = 0; i < IMPORT_UUID_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", uuid[i]);
}

/* The kept verdict, or the proof. */
static void large_ask(const struct opaque_device *device, struct large_result *result)
{
	char words[LARGE_WORDS_SIZE];

	large_format_uuid(device->uuid, words);
	result->verdict = verdict_get(device->id, &large_proof, words, result->why);
	large_note(device->id, result);
}

/* The record, or the proof, for which threads wait together. */
static void large_find_out(const struct opaque_device *device, struct large_result *result)
{
	char key[LARGE_KEY_SIZE];
	THREAD_NO_CANCEL();

	if (large_recall(device->id, result))
		return;
	result->verdict = VERDICT_UNANSWERED;
	snprintf(result->why, sizeof(result->why), "no process is started within a fork()");
	snprintf(key, sizeof(key), "%s %p", large_proof.name, (void *)device->id);
	if (!question_begin(key, result, sizeof(*result)))
		return;
	if (!large_recall(device->id, result))
		large_ask(device, result);
	question_end(key, result, sizeof(*result));
}

/* Apart from large_check(), whose frame is in every import. */
static __attribute__((noinline)) cl_int large_prove(const struct opaque_device *device)
{
	struct large_result result;

	large_find_out(device, &result);
	switch (result.verdict) {
	case VERDICT_PASSED:
		return CL_SUCCESS;
	case VERDICT_FAILED:
		log_error("CUDA device memory of %u MiB and more is not imported: %s, as a child "
			  "process showed; allocate parts of %u MiB at most",
			  LARGE_MIB, result.why, LARGE_PART_MIB);
		return CL_INVALID_OPERATION;
	default:
		log_error("CUDA device memory of %u MiB and more is not imported before a child "
			  "process shows that the driver survives: %s",
			  LARGE_MIB, result.why);
		return CL_OUT_OF_RESOURCES;
	}
}

cl_int large_check(const struct opaque_device *device, const struct import_opaque *opaque)
{
	if (!opaque->is_on_device || opaque->size < LARGE_LEAST)
		return CL_SUCCESS;
	return large_prove(device);
}

/* The platform's device with the UUID in @text; NULL: none. */
static cl_device_id large_find_device(cl_platform_id platform, const char *text,
				      unsigned char uuid[IMPORT_UUID_SIZE])
{
	char have[LARGE_WORDS_SIZE];
	cl_device_id devices[64];
	cl_uint count = 0;

	if (next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 64, devices, &count))
		return NULL;
	for (cl_uint i = 0; i < count && i < 64; i++) {
		if (next.clGetDeviceInfo(devices[i], CL_DEVICE_UUID_KHR, IMPORT_UUID_SIZE, uuid,
					 NULL))
			continue;
		large_format_uuid(uuid, have);
		if (!strcmp(have, text))
			return devices[i];
	}
	return NULL;
}

static bool large_run_proof(cl_platform_id platform, const char *words, char *answer, size_t size)
{
	unsigned char uuid[IMPORT_UUID_SIZE];
	cl_device_id device = large_find_device(platform, words, uuid);
	char why[VERDICT_WHY_SIZE] = "";

	return device &&
	       verdict_format(large_test(device, uuid, LARGE_LEAST, why), why, answer, size);
}

const struct proof large_proof = {
	.name = "large_memory",
	.patience_ms = LARGE_PATIENCE_MS,
	.run = large_run_proof,
};
