/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/zero_copy.h"

#include <stdio.h>
#include <stdlib.h>

#include "icd/config.h"
#include "icd/probe/proof.h"
#include "util/log.h"

static struct publish_list zero_copy_of_devices; /* struct zero_copy */

static void zero_copy_add_device(struct zero_copy *proofs, cl_device_id root)
{
	for (cl_uint i = 0; i < proofs->num_devices; i++)
		if (proofs->devices[i] == root)
			return;
	proofs->devices[proofs->num_devices++] = root;
}

/* @devices: records; a record may appear several times. */
static struct zero_copy *zero_copy_create(const struct device *const *devices, size_t count)
{
	struct zero_copy *proofs = calloc(1, sizeof(*proofs));

	if (!proofs)
		return NULL;
	proofs->devices = calloc(count, sizeof(proofs->devices[0]));
	if (!proofs->devices) {
		free(proofs);
		return NULL;
	}
	proofs->platform = devices[0]->platform;
	for (size_t i = 0; i < count; i++)
		zero_copy_add_device(proofs, devices[i]->id);
	proofs->device = proofs->num_devices == 1 ? devices[0] : NULL;
	return proofs;
}

static void zero_copy_destroy(struct zero_copy *proofs)
{
	free(proofs->devices);
	free(proofs);
}

static bool zero_copy_is_of(const void *proofs, const void *device)
{
	return ((const struct zero_copy *)proofs)->device == device;
}

static struct zero_copy *zero_copy_of_device(const struct device *device)
{
	struct zero_copy *found = publish_find(&zero_copy_of_devices, zero_copy_is_of, device);
	struct zero_copy *mine = found ? NULL : zero_copy_create(&device, 1);

	if (!mine)
		return found;
	found = publish_add(&zero_copy_of_devices, mine, zero_copy_is_of, device);
	if (found != mine)
		zero_copy_destroy(mine);
	return found;
}

/* The records of a context's root devices: false if a record cannot be made. */
static bool zero_copy_get_records(const cl_device_id *ids, size_t count,
				  const struct device **records)
{
	for (size_t i = 0; i < count; i++) {
		records[i] = device_get_last(ids[i]);
		if (!records[i])
			return false;
	}
	return count > 0;
}

static bool zero_copy_is_one_device(const struct device *const *records, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (records[i]->id != records[0]->id)
			return false;
	return true;
}

static void zero_copy_find_proofs(const struct device *const *records, size_t count,
				  struct zero_copy_context *c)
{
	c->is_own = !zero_copy_is_one_device(records, count);
	c->proofs = c->is_own ? zero_copy_create(records, count) : zero_copy_of_device(records[0]);
	c->rule = c->is_own ? &c->own : &records[0]->rule;
}

static bool zero_copy_run_proof(cl_platform_id platform, const char *words, char *answer,
				size_t size)
{
	cl_device_id devices[FACTS_DEVICES];
	char line[HOST_RULE_LINE_SIZE], why[FACTS_WHY_SIZE], *end;
	const unsigned long count = strtoul(words, &end, 10);
	struct host_rule rule;
	enum tested found;

	if (!count || count > FACTS_DEVICES ||
	    !device_read_numbers(platform, end, devices, (cl_uint)count))
		return false;
	found = selftest_host_rule(devices, (cl_uint)count, &rule, why, sizeof(why));
	host_rule_format(&rule, line);
	snprintf(answer, size, "%s", found == UNTESTED ? "unknown" : line);
	return true;
}

const struct proof host_rule_proof = {
	.name = "host_rule",
	.patience_ms = 65000, /* more than a probe process has */
	.run = zero_copy_run_proof,
};

static bool zero_copy_ask(struct zero_copy_context *c, char line[PROBE_LINE_SIZE])
{
	const struct zero_copy *proofs = c->proofs;
	char words[PROBE_REQUEST_SIZE];
	enum probe_end end;

	snprintf(words, sizeof(words), "%u", proofs->num_devices);
	if (!device_write_numbers(proofs->platform, proofs->devices, proofs->num_devices, words,
				  sizeof(words)))
		return false;
	end = proof_ask(proofs->platform, &host_rule_proof, words, line);
	if (end == PROBE_ANSWERED)
		return host_rule_parse(line, &c->own);
	/* A driver that dies takes nothing in such contexts. */
	return probe_blames_driver(end);
}

/* The rule of a context of several devices.  False: not now. */
static bool zero_copy_find_rule(struct zero_copy_context *c)
{
	char line[PROBE_LINE_SIZE] = "too many devices", why[FACTS_WHY_SIZE];

	if (!c->is_own)
		return true;
	if (config_probe() == PROBE_HERE)
		return selftest_host_rule(c->proofs->devices, c->proofs->num_devices, &c->own, why,
					  sizeof(why)) != UNTESTED;
	if (zero_copy_ask(c, line))
		return true;
	log_error("the devices of the context could not be tested together: %s", line);
	return false;
}

static bool zero_copy_find_out(const struct context *context, struct zero_copy_context *c)
{
	const cl_device_id *ids;
	size_t count = context_devices(context, &ids);
	const struct device **records = calloc(count, sizeof(records[0]));

	if (records && zero_copy_get_records(ids, count, records))
		zero_copy_find_proofs(records, count, c);
	free(records);
	return c->proofs && zero_copy_find_rule(c);
}

static void zero_copy_release(struct context_data *data)
{
	(void)data; /* the tests keep no object of the driver's */
}

static void zero_copy_free(struct context_data *data)
{
	struct zero_copy_context *c = (struct zero_copy_context *)data;

	if (c->is_own && c->proofs)
		zero_copy_destroy(c->proofs);
	free(c);
}

struct zero_copy_context *zero_copy_get(struct context *context)
{
	static const struct context_data_ops ops = { zero_copy_release, zero_copy_free };
	struct context_data *data = context_data_get(context, &ops);
	struct zero_copy_context *c;

	if (data)
		return (struct zero_copy_context *)data;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->base.ops = &ops;
	if (zero_copy_find_out(context, c))
		return (struct zero_copy_context *)context_data_add(context, &c->base);
	zero_copy_free(&c->base);
	return NULL;
}

cl_int zero_copy_find(struct context *context, struct zero_copy_context **c)
{
	if (!context) {
		log_error("the context is gone, or its record had no memory");
		return CL_INVALID_CONTEXT;
	}
	*c = zero_copy_get(context);
	return *c ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}
