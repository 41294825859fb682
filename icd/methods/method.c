/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/driver_info.h"
#include "icd/methods/host_ptr.h"
#include "icd/methods/opaque_fd/large.h"
#include "icd/objects/device.h"
#include "icd/objects/method.h"

#include <stdio.h>
#include <string.h>

#include "icd/selftest/selftest.h"
#include "util/log.h"

#define ROWS 4

/* A device uses, for each type of memory, the first method with a positive probe. */
static const struct method_ops *const rows[IMPORT_TYPES][ROWS] = {
	[IMPORT_HOST] = { &method_native_ops, &method_opaque_fd_ops, &method_host_ptr_ops,
			  &method_khr_ops },
	/* The CPU's mapping of a dma-buf comes last. */
	[IMPORT_DMABUF] = { &method_native_ops, &method_opaque_fd_ops, &method_khr_ops,
			    &method_host_ptr_ops },
};

void method_context_release(cl_context context)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[IMPORT_HOST][i]->context_release)
			rows[IMPORT_HOST][i]->context_release(context);
}

bool method_driver_has(enum method_quirk quirk, const char *extensions)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[IMPORT_HOST][i]->quirks & quirk && rows[IMPORT_HOST][i]->extension &&
		    has_word(extensions, rows[IMPORT_HOST][i]->extension))
			return true;
	return false;
}

/* If a better method cannot be tested now, a worse one is taken, and the record is renewed. */
static void method_probe_type(struct device *device, enum import_type type)
{
	struct facts_type *answer = &device->facts.type[type], reason = { .is_reason = false };
	const struct method_ops *ops = NULL;
	const bool unknown = device->facts.is_unknown;
	bool missed = false;

	for (size_t i = 0; i < ROWS && !ops; i++) {
		answer->is_reason = device->facts.is_unknown = false;
		if (rows[type][i]->probe(device, type, answer))
			ops = rows[type][i];
		else
			missed |= device->facts.is_unknown;
		if (!ops && answer->is_reason)
			reason = *answer;
	}
	device->facts.is_unknown = unknown || (ops ? device->facts.is_unknown : missed);
	if (!ops && reason.is_reason)
		*answer = reason;
	snprintf(answer->method, sizeof(answer->method), "%s", ops ? ops->name : "-");
	device->ops[type] = ops;
	device->facts.is_best &= ops && !missed;
}

static void method_log(const struct device *device)
{
	for (int type = 0; type < IMPORT_TYPES; type++)
		log_debug("device %p, %s: %s: %s", (void *)device->id, type_extension(type),
			  device->ops[type] ? device->ops[type]->name : "refused",
			  device->facts.type[type].why);
}

void method_probe(struct device *device)
{
	struct facts *facts = &device->facts;
	const struct method_ops *host;

	facts->is_best = true;
	for (int type = 0; type < IMPORT_TYPES; type++)
		method_probe_type(device, (enum import_type)type);
	host = device->ops[IMPORT_HOST];
	facts->image2d = host && host->create_image && !device->image2d_from_buffer;
	facts->driver_dma_bufs = driver_imports(device->id, CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR);
	method_log(device);
}

static const struct method_ops *method_of_image(unsigned int rule)
{
	return rule < IMAGE_RULE(IMAGE_OF_DMABUF, false) ? &method_host_ptr_ops : &method_khr_ops;
}

/* A driver that makes 2D images from buffers makes them; else the layer does, over the memory. */
bool method_has_danger(const struct device *device, unsigned int danger)
{
	const unsigned int rule = danger - DANGER_IMAGES;
	const struct method_ops *ops = danger == DANGER_LARGE ? &method_opaque_fd_ops
							      : method_of_image(rule);
	const bool is_2d = rule % 2, by_driver = device->image2d_from_buffer;

	if (danger == DANGER_EVENTS)
		return device->ops[IMPORT_DMABUF] == &method_host_ptr_ops;
	if (!device->facts.has_images ||
	    (device->ops[IMPORT_HOST] != ops && device->ops[IMPORT_DMABUF] != ops))
		return false;
	if (danger == DANGER_LARGE)
		return true;
	return rule / 2 == IMAGE_OF_MEMORY ? is_2d && !by_driver : !is_2d || by_driver;
}

void method_expect_death(struct facts *facts, unsigned int danger)
{
	if (danger == DANGER_EVENTS)
		host_ptr_refuse_events(facts, "crash or hang the driver");
	else if (danger == DANGER_LARGE)
		large_expect_death(facts);
	else
		facts->images[danger - DANGER_IMAGES].found = IMAGE_FATAL;
}

void method_run_danger(struct device *device, unsigned int danger)
{
	const unsigned int rule = danger - DANGER_IMAGES;

	if (danger == DANGER_EVENTS)
		host_ptr_test_events(device);
	else if (danger == DANGER_LARGE)
		large_test(device);
	else if (!selftest_image(device, method_of_image(rule), rule, &device->facts.images[rule]))
		device->facts.is_unknown = true;
}

const struct method_ops *method_find(const char *name, enum import_type type)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[type][i]->create && !strcmp(rows[type][i]->name, name))
			return rows[type][i];
	return NULL;
}

bool method_take_native(struct device *device)
{
	bool takes_all = true;

	if (native_takes_others(device))
		device->others = &method_native_ops;
	for (int type = 0; type < IMPORT_TYPES; type++)
		if (method_native_ops.probe(device, (enum import_type)type,
					    &device->facts.type[type]))
			device->ops[type] = &method_native_ops;
		else
			takes_all = false;
	return takes_all;
}

void method_recall(struct device *device, const struct facts *facts, const char *why)
{
	if (facts)
		device->facts = *facts;
	else
		device->facts.is_unknown = true;
	for (int type = 0; type < IMPORT_TYPES; type++) {
		struct facts_type *answer = &device->facts.type[type];

		device->ops[type] = method_find(answer->method, (enum import_type)type);
		if (!facts)
			snprintf(answer->why, sizeof(answer->why), "%s", why);
	}
	method_take_native(device);
	method_log(device);
}
