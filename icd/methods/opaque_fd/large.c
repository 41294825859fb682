/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts for the process: a record for each device. */
#include "icd/methods/opaque_fd/large.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/layer.h"
#include "icd/methods/opaque_fd/large_test.h"
#include "util/lock.h"
#include "util/log.h"

#define LARGE_WORDS_SIZE (2 * IMPORT_UUID_SIZE + 1)
#define LARGE_PATIENCE_MS 65000 /* more than a probe process has */

struct large_record {
	struct large_record *next;
	cl_device_id device;
	bool is_asking; /* a thread waits for the proof; no result yet */
	enum verdict result;
	char why[VERDICT_WHY_SIZE];
};

static void large_in_child(struct lock *lock);

LOCK_DEFINE_IN_CHILD(large_lock, LOCK_LAST, large_in_child); /* the list, and all records */
static struct large_record *large_records GUARDED_BY(large_lock);
static pthread_cond_t large_changed = PTHREAD_COND_INITIALIZER;

static struct large_record *large_find(cl_device_id device) REQUIRES(large_lock)
{
	struct large_record *r = large_records;

	while (r && r->device != device)
		r = r->next;
	return r;
}

static void large_remove(struct large_record *gone) REQUIRES(large_lock)
{
	struct large_record **link = &large_records;

	while (*link != gone)
		link = &(*link)->next;
	*link = gone->next;
	free(gone);
}

static bool large_add(cl_device_id device) REQUIRES(large_lock)
{
	struct large_record *r = calloc(1, sizeof(*r));

	if (!r)
		return false;
	r->device = device;
	r->is_asking = true;
	r->next = large_records;
	large_records = r;
	return true;
}

/* The threads that wait for proofs are not in the child. */
static void large_in_child(struct lock *lock) TSA(no_thread_safety_analysis)
{
	struct large_record **link = &large_records;

	(void)lock;
	pthread_cond_init(&large_changed, NULL);
	while (*link) {
		if ((*link)->is_asking)
			large_remove(*link);
		else
			link = &(*link)->next;
	}
}

/* @is_mine: set if the caller asks for the proof, and calls large_note(). */
static enum verdict large_look(cl_device_id device, char why[VERDICT_WHY_SIZE], bool *is_mine)
{
	enum verdict result = VERDICT_UNKNOWN;
	struct large_record *r;

	snprintf(why, VERDICT_WHY_SIZE, "no memory, or within a fork()");
	lock_acquire(&large_lock);
	r = large_find(device);
	while (r && r->is_asking && !lock_wait(&large_lock, &large_changed, NULL))
		r = large_find(device);
	if (r && !r->is_asking) {
		result = r->result;
		memcpy(why, r->why, VERDICT_WHY_SIZE);
	}
	*is_mine = !r && large_add(device);
	lock_release(&large_lock);
	return result;
}

/* What is unknown is not noted: the next import tries again. */
static void large_note(cl_device_id device, enum verdict result, const char *why)
{
	struct large_record *r;

	lock_acquire(&large_lock);
	r = large_find(device);
	if (r && result == VERDICT_UNKNOWN) {
		large_remove(r);
	} else if (r) {
		r->is_asking = false;
		r->result = result;
		snprintf(r->why, sizeof(r->why), "%s", why);
	}
	pthread_cond_broadcast(&large_changed);
	lock_release(&large_lock);
}

static void large_format_uuid(const unsigned char *uuid, char text[LARGE_WORDS_SIZE])
{
	for (size_t i = 0; i < IMPORT_UUID_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", uuid[i]);
}

/* The record, or the proof. */
static enum verdict large_find_out(const struct opaque_coherency *device,
				   char why[VERDICT_WHY_SIZE])
{
	char words[LARGE_WORDS_SIZE];
	bool is_mine;
	enum verdict result = large_look(device->device, why, &is_mine);

	if (!is_mine)
		return result;
	large_format_uuid(device->uuid, words);
	result = verdict_get(device->device, &large_proof, words, why);
	large_note(device->device, result, why);
	return result;
}

/* Apart from large_check(), whose frame is in every import. */
static __attribute__((noinline)) cl_int large_prove(const struct opaque_coherency *device)
{
	char why[VERDICT_WHY_SIZE];

	switch (large_find_out(device, why)) {
	case VERDICT_PASSED:
		return CL_SUCCESS;
	case VERDICT_FAILED:
		log_error("CUDA device memory of %u MiB and more is not imported: %s, as a child "
			  "process showed; allocate parts below %u MiB",
			  LARGE_MIB, why, LARGE_MIB);
		return CL_INVALID_OPERATION;
	default:
		log_error("CUDA device memory of %u MiB and more is not imported before a child "
			  "process shows that the driver survives: %s",
			  LARGE_MIB, why);
		return CL_OUT_OF_RESOURCES;
	}
}

cl_int large_check(const struct opaque_coherency *device, const struct import_opaque *opaque)
{
	if (!opaque->is_on_device || opaque->size < LARGE_LEAST)
		return CL_SUCCESS;
	return large_prove(device);
}

bool large_is_refused(const struct opaque_coherency *device)
{
	char words[LARGE_WORDS_SIZE], why[VERDICT_WHY_SIZE];

	large_format_uuid(device->uuid, words);
	return verdict_recall(device->device, &large_proof, words, why) == VERDICT_FAILED;
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

const struct proof large_proof = { "large_memory", LARGE_PATIENCE_MS, large_run_proof };
