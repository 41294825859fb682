/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/khr/together.h"

#include <stdio.h>
#include <stdlib.h>

#include "icd/config.h"
#include "icd/methods/khr/device.h"
#include "icd/probe/proof.h"
#include "util/log.h"

struct together {
	struct context_data base;
	atomic_uint found[2]; /* by enum khr_memory: an enum tested */
	cl_platform_id platform;
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
	t->platform = context_platform(context);
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

/* @words: enum khr_memory, and the devices' count and numbers. */
static bool together_run_proof(cl_platform_id platform, const char *words, char *answer,
			       size_t size)
{
	cl_device_id devices[FACTS_DEVICES];
	unsigned int memory, count;
	int used = 0;

	if (sscanf(words, "%u %u%n", &memory, &count, &used) != 2 || memory > KHR_PAGES ||
	    count > FACTS_DEVICES || !device_read_numbers(platform, words + used, devices, count))
		return false;
	snprintf(answer, size, "tested %d",
		 (int)khr_prove(devices, count, (enum khr_memory)memory));
	return true;
}

const struct proof khr_together_proof = {
	.name = "khr_together",
	.patience_ms = 65000, /* more than a probe process has */
	.run = together_run_proof,
};

/* A driver that dies refuses. */
static enum tested together_ask(const struct together *t, enum khr_memory memory)
{
	char words[PROBE_REQUEST_SIZE], line[PROBE_LINE_SIZE];
	enum probe_end end;
	int found;

	snprintf(words, sizeof(words), "%d %u", (int)memory, t->count);
	if (!device_write_numbers(t->platform, t->roots, t->count, words, sizeof(words)))
		return UNTESTED;
	end = proof_ask(t->platform, &khr_together_proof, words, line);
	if (end == PROBE_ANSWERED && sscanf(line, "tested %d", &found) == 1)
		return (enum tested)found;
	log_debug("the self-test of the devices of a context: %s", line);
	return probe_blames_driver(end) ? BROKEN : UNTESTED;
}

static enum tested together_find_out(struct together *t, enum khr_memory memory)
{
	enum tested found = (enum tested)atomic_load(&t->found[memory]);

	if (found != UNTESTED)
		return found;
	found = config_probe() == PROBE_HERE ? khr_prove(t->roots, t->count, memory)
					     : together_ask(t, memory);
	atomic_store(&t->found[memory], found);
	return found;
}

static cl_int together_refuse(enum tested found)
{
	static const char *const says[] = {
		[UNTESTED] = "could not be tested this time",
		[FAILED] = "work on other memory than a dma-buf that they take",
		[BROKEN] = "refuse dma-bufs",
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
