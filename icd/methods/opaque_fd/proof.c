/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/opaque_fd/proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/layer.h"
#include "icd/methods/opaque_fd/buffer.h"
#include "icd/methods/opaque_fd/invalidate.h"
#include "icd/objects/device.h"
#include "icd/objects/memobj_watch.h"
#include "icd/selftest/job.h"
#include "icd/selftest/result_cache.h"
#include "icd/selftest/selftest.h"
#include "icd/text.h"
#include "util/lock.h"
#include "util/log.h"

#define REVISION 2 /* of the self-test: another asks again */
#define ROUNDS 256 /* other programs may evict what the device has cached, by chance */
#define NOT_NOW (-1)

static const char *const maker_name[IMPORT_MAKERS] = {
	[IMPORT_BY_CUDA] = "CUDA",
	[IMPORT_BY_VULKAN] = "Vulkan",
};

struct known {
	struct known *next;
	cl_device_id device;
	struct opaque_proof proof;
};

LOCK_DEFINE(known_lock, LOCK_LAST); /* the list */
static struct known *known GUARDED_BY(known_lock);

struct sample {
	struct import_region *region;
	struct import_opaque opaque;
	unsigned char uuid[IMPORT_UUID_SIZE];
};

/* The region is held until the driver has destroyed the buffer. */
static cl_mem sample_buffer(cl_context context, bool reader, void *arg, cl_int *err)
{
	const struct sample *s = arg;
	cl_mem mem =
		opaque_fd_buffer(context, CL_MEM_READ_WRITE, s->opaque.fd, s->region->size, err);

	(void)reader;
	if (!mem)
		return NULL;
	*err = memobj_watch(mem, s->region, memobj_destroyed);
	if (!*err)
		return mem;
	next.clReleaseMemObject(mem);
	return NULL;
}

static cl_int sample_invalidate(cl_context context, void *arg)
{
	const struct sample *s = arg;
	struct import_invalidate *invalidate;
	int error = invalidate_get(context, s->uuid, &invalidate);

	if (error)
		return CL_OUT_OF_RESOURCES;
	error = invalidate->invalidate(invalidate);
	invalidate->put(invalidate);
	return error ? CL_INVALID_OPERATION : CL_SUCCESS;
}

static int opaque_proof_run(cl_device_id device, struct sample *s, bool invalidated)
{
	const struct selftest_memory memory = {
		.bytes = s->region->addr,
		.create = sample_buffer,
		.invalidate = invalidated ? sample_invalidate : NULL,
		.finish = invalidated ? invalidate_drop_context : NULL,
		.rounds = ROUNDS,
		.apart = true,
		.arg = s,
	};
	cl_int result = selftest_memory(device, &memory);

	return selftest_is_transient(result) ? NOT_NOW : result == 1;
}

/* A refresh comes before its kernel by a user event (access.h). */
static int prove_events(cl_device_id device)
{
	switch (selftest_user_event(device)) {
	case PASSED:
		return PROOF_INVALIDATED;
	case UNTESTED:
		return NOT_NOW;
	default:
		log_error("commands that wait for user events do not work on this device, so its "
			  "caches cannot be invalidated before kernels");
		return PROOF_COPIES;
	}
}

/*
 * What Vulkan makes is never believed to be coherent: a cache that keeps nothing today, because
 * other programs use it, would pass.  CUDA maps host memory past the cache.
 */
static int prove_sample(cl_device_id device, struct sample *s, enum import_maker maker)
{
	int found = 0;

	if (maker == IMPORT_BY_CUDA)
		found = opaque_proof_run(device, s, false);
	if (found)
		return found < 0 ? found : PROOF_COHERENT;
	found = opaque_proof_run(device, s, true);
	if (found < 0)
		return found;
	return found ? prove_events(device) : PROOF_COPIES;
}

struct proof_job {
	struct job job;
	cl_device_id device;
	unsigned char uuid[IMPORT_UUID_SIZE];
	enum import_maker maker;
	int found; /* an enum proof, or NOT_NOW */
};

static void proof_run(struct job *job)
{
	struct proof_job *j = (struct proof_job *)job;
	struct sample s;

	j->found = PROOF_NONE;
	memcpy(s.uuid, j->uuid, sizeof(s.uuid));
	if (import_sample(j->maker, s.uuid, &s.region))
		return;
	if (!import_opaque(s.region, s.uuid, &s.opaque))
		j->found = prove_sample(j->device, &s, j->maker);
	import_put(s.region);
}

/* An enum proof, or NOT_NOW. */
static int opaque_proof_prove(cl_device_id device, const unsigned char *uuid,
			      enum import_maker maker)
{
	struct proof_job *j = calloc(1, sizeof(*j));
	int found = NOT_NOW;

	if (!j)
		return NOT_NOW;
	j->job.run = proof_run;
	j->device = device;
	memcpy(j->uuid, uuid, sizeof(j->uuid));
	j->maker = maker;
	switch (job_run(&j->job, JOB_COMPILE_LIMIT_MS)) {
	case JOB_ENDED:
		found = j->found;
		break;
	case JOB_ABANDONED:
		found = PROOF_NONE;
		break;
	case JOB_NOT_STARTED:
		break;
	}
	job_put(&j->job);
	return found;
}

/* NULL: no memory. */
static char *opaque_proof_key_of(cl_device_id device, const unsigned char *uuid,
				 enum import_maker maker)
{
	char *name = device_string(device, CL_DEVICE_NAME),
	     *driver = device_string(device, CL_DRIVER_VERSION),
	     *version = device_string(device, CL_DEVICE_VERSION);
	char text[2 * IMPORT_UUID_SIZE + 1], *key;

	for (size_t i = 0; i < IMPORT_UUID_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", uuid[i]);
	key = text_create("opaque_fd %d by %s on %s, driver %s, %s, %s", REVISION,
			  maker_name[maker], name ? name : "?", driver ? driver : "?",
			  version ? version : "?", text);
	free(name);
	free(driver);
	free(version);
	return key;
}

/* What failed may work tomorrow, with another library or another luck: that is not remembered. */
static int prove_and_keep(cl_device_id device, const unsigned char *uuid, enum import_maker maker,
			  const char *key)
{
	int found = opaque_proof_prove(device, uuid, maker);
	char line[16];

	if (key && found > PROOF_COPIES) {
		snprintf(line, sizeof(line), "%d", found);
		result_cache_set(key, line);
	}
	return found;
}

static int opaque_proof_recall(cl_device_id device, const unsigned char *uuid,
			       enum import_maker maker, bool may_compile)
{
	char *key = opaque_proof_key_of(device, uuid, maker), line[16];
	int found = NOT_NOW;

	if (key && result_cache_get(key, line, sizeof(line)))
		found = atoi(line);
	else if (may_compile)
		found = prove_and_keep(device, uuid, maker, key);
	free(key);
	return found;
}

static const char *opaque_proof_describe(enum proof proof)
{
	switch (proof) {
	case PROOF_COHERENT:
		return "zero copy by self-test";
	case PROOF_INVALIDATED:
		return "zero copy by self-test, caches invalidated before kernels";
	case PROOF_COPIES:
		return "copied";
	default:
		return "none";
	}
}

static void opaque_proof_explain(struct opaque_proof *proof)
{
	enum proof vulkan = proof->by[IMPORT_BY_VULKAN], cuda = proof->by[IMPORT_BY_CUDA];

	snprintf(proof->why[IMPORT_HOST], sizeof(proof->why[IMPORT_HOST]),
		 "any pages by Vulkan: %s; memory of CUDA's cuMemCreate: %s",
		 opaque_proof_describe(vulkan), opaque_proof_describe(cuda));
	snprintf(proof->why[IMPORT_DMABUF], sizeof(proof->why[IMPORT_DMABUF]),
		 "made of this process's memory, or mapped by the CPU: as host memory by Vulkan "
		 "(%s) or CUDA (%s)",
		 opaque_proof_describe(vulkan), opaque_proof_describe(cuda));
}

static size_t base_alignment(cl_device_id device)
{
	cl_uint bits = 0;

	next.clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, NULL);
	return bits > 8 ? bits / 8 : 1;
}

static bool opaque_proof_make(cl_device_id device, bool may_compile, struct opaque_proof *proof)
{
	bool conclusive = true;

	memset(proof, 0, sizeof(*proof));
	proof->align = base_alignment(device);
	if (next.clGetDeviceInfo(device, CL_DEVICE_UUID_KHR, sizeof(proof->uuid), proof->uuid,
				 NULL)) {
		for (int type = 0; type < IMPORT_TYPES; type++)
			snprintf(proof->why[type], sizeof(proof->why[type]),
				 "the device has no CL_DEVICE_UUID_KHR");
		return true;
	}
	for (int maker = 0; maker < IMPORT_MAKERS; maker++) {
		int found = opaque_proof_recall(device, proof->uuid, maker, may_compile);

		conclusive &= found != NOT_NOW;
		proof->by[maker] = found == NOT_NOW ? PROOF_NONE : (enum proof)found;
	}
	opaque_proof_explain(proof);
	return conclusive;
}

static bool opaque_proof_find(cl_device_id device, struct opaque_proof *proof)
{
	const struct known *k;

	lock_acquire(&known_lock);
	k = known;
	while (k && k->device != device)
		k = k->next;
	if (k)
		*proof = k->proof;
	lock_release(&known_lock);
	return k;
}

/* Two threads may prove the same at once; both records say the same. */
bool opaque_proof_get(cl_device_id device, bool may_compile, struct opaque_proof *proof)
{
	struct known *k;

	if (opaque_proof_find(device, proof))
		return true;
	if (!opaque_proof_make(device, may_compile, proof))
		return false;
	k = malloc(sizeof(*k));
	if (!k)
		return true;
	k->device = device;
	k->proof = *proof;
	lock_acquire(&known_lock);
	k->next = known;
	known = k;
	lock_release(&known_lock);
	return true;
}
