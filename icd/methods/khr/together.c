/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/khr/together.h"

#include <stdlib.h>

#include "icd/methods/khr/device.h"
#include "icd/selftest/job.h"
#include "util/log.h"

#define FOUND_BITS 3 /* of an enum tested */

struct together {
	struct context_data base;
	/* By enum khr_memory: an enum tested, and above job_late() at the test. */
	atomic_uint found[2];
	cl_uint count;
	cl_device_id roots[]; /* each once */
};

static void together_add(struct together *t, cl_device_id root)
{
	for (cl_uint i = 0; i < t->count; i++)
		if (t->roots[i] == root)
			return;
	t->roots[t->count++] = root;
}

static void together_release(struct context_data *data)
{
	(void)data; /* the tests keep no object of the driver's */
}

static void together_free(struct context_data *data)
{
	free(data);
}

static const struct context_data_ops together_ops = { together_release, together_free };

static struct together *together_create(const struct context *context)
{
	const cl_device_id *ids;
	const size_t count = context_devices(context, &ids);
	struct together *t = calloc(1, sizeof(*t) + count * sizeof(t->roots[0]));

	if (!t)
		return NULL;
	t->base.ops = &together_ops;
	for (size_t i = 0; i < count; i++)
		together_add(t, device_root(ids[i]));
	return t;
}

static struct together *together_get(struct context *context)
{
	struct context_data *data = context_data_get(context, &together_ops);
	struct together *mine;

	if (data)
		return (struct together *)data;
	mine = together_create(context);
	return mine ? (struct together *)context_data_add(context, &mine->base) : NULL;
}

/* What is known, or UNTESTED; a test that hung is run again when an abandoned job has ended. */
static enum tested together_recall(const struct together *t, enum khr_memory memory)
{
	const unsigned int known = atomic_load(&t->found[memory]);
	const enum tested found = known & ((1u << FOUND_BITS) - 1);

	return found == HUNG && known >> FOUND_BITS != job_late() ? UNTESTED : found;
}

static enum tested together_find_out(struct together *t, enum khr_memory memory)
{
	enum tested found = together_recall(t, memory);

	if (found != UNTESTED)
		return found;
	found = khr_prove(t->roots, t->count, memory);
	if (found != UNTESTED)
		atomic_store(&t->found[memory], found | job_late() << FOUND_BITS);
	return found;
}

static cl_int together_refuse(enum tested found)
{
	static const char *const says[] = {
		[UNTESTED] = "could not be tested this time",
		[FAILED] = "work on other memory than a dma-buf that they take",
		[BROKEN] = "refuse dma-bufs",
		[HUNG] = "made a self-test hang",
		[NO_SAMPLE] = "are not proved: climport can make no dma-buf for a self-test",
	};

	log_error("the devices of the context, in one context, %s by " KHR_EXTENSION, says[found]);
	return found == UNTESTED ? CL_OUT_OF_RESOURCES : CL_INVALID_OPERATION;
}

cl_int khr_prove_together(struct context *context, enum khr_memory memory)
{
	struct together *t = together_get(context);
	enum tested found;

	if (!t) {
		log_error("no memory to test the devices of a context");
		return CL_OUT_OF_HOST_MEMORY;
	}
	if (t->count <= 1)
		return CL_SUCCESS;
	found = together_find_out(t, memory);
	return found == PASSED ? CL_SUCCESS : together_refuse(found);
}
