/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/driver_info.h"
#include "icd/objects/device.h"
#include "icd/objects/method.h"

#include <stdio.h>
#include <string.h>

#include "util/log.h"

/* A device uses, for each type of memory, the first method of the table with a positive probe. */
static const struct method_ops *const rows[] = {
	&method_native_ops,   &method_opaque_fd_ops,
	&method_khr_ops,			     /* before the CPU's mapping of a dma-buf */
	&method_host_ptr_ops, &method_khr_pages_ops, /* where host pointers are copied */
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

void method_context_release(cl_context context)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i]->context_release)
			rows[i]->context_release(context);
}

bool method_driver_has(enum method_quirk quirk, const char *extensions)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i]->quirks & quirk && rows[i]->extension &&
		    has_word(extensions, rows[i]->extension))
			return true;
	return false;
}

/* An unselected device keeps what the driver itself has. */
static bool method_may_serve(const struct device *device, const struct method_ops *ops)
{
	return device->is_selected || !ops->create;
}

/* If a better method cannot be tested now, a worse one is not taken for good. */
static void method_probe_type(struct device *device, const char *extensions, enum import_type type)
{
	struct method *method = &device->method[type], reason = { .is_reason = false };
	bool is_unknown = false;

	for (size_t i = 0; i < ROWS && !method->ops; i++) {
		method->unknown = false;
		if (method_may_serve(device, rows[i]) &&
		    rows[i]->probe(device, extensions, type, method))
			method->ops = rows[i];
		else if (method->is_reason)
			reason = *method;
		is_unknown |= method->unknown;
		method->is_reason = false;
	}
	if (!method->ops && reason.is_reason)
		*method = reason;
	if (!method->ops)
		method->unknown = is_unknown;
	if (!method->ops && !device->is_selected)
		snprintf(method->why, sizeof(method->why), "%s", device->unselected);
}

static void method_probe_others(struct device *device, const char *extensions)
{
	for (size_t i = 0; i < ROWS && !device->others; i++)
		if (rows[i]->takes_others && rows[i]->takes_others(device, extensions))
			device->others = rows[i];
}

static void method_log(const struct device *device)
{
	for (int type = 0; type < IMPORT_TYPES; type++)
		log_debug("device %p, %s: %s: %s", (void *)device->id, type_extension(type),
			  device->method[type].ops ? device->method[type].ops->name : "refused",
			  device->method[type].why);
}

static void method_note_type(struct device *device, enum import_type type)
{
	const struct method *method = &device->method[type];
	struct facts_type *facts = &device->facts.type[type];
	const char *name = method->ops ? method->ops->name : "-";

	device->facts.is_unknown |= method->unknown;
	snprintf(facts->method, sizeof(facts->method), "%s", name);
	facts->align = method->align;
	memcpy(facts->why, method->why, sizeof(facts->why));
}

void method_probe(struct device *device, const char *extensions)
{
	struct facts *facts = &device->facts;
	const struct method_ops *host;

	facts->is_best = true;
	method_probe_others(device, extensions);
	for (int type = 0; type < IMPORT_TYPES; type++) {
		method_probe_type(device, extensions, type);
		method_note_type(device, type);
		facts->is_best &= device->method[type].ops != NULL;
	}
	host = device->method[IMPORT_HOST].ops;
	facts->image2d = host && host->create_image && !device->image2d_from_buffer;
	method_log(device);
}

/* Subtracts the length of the lists from @number if they are shorter.  Two types of memory may share a list. */
static const struct method_danger *method_find_danger(const struct device *device, bool of_images,
						      unsigned int *number)
{
	const struct method_danger *last = NULL;

	for (int type = 0; type < IMPORT_TYPES; type++) {
		const struct method_ops *ops = device->method[type].ops;
		const struct method_danger *list = !ops	       ? NULL
						   : of_images ? ops->image_dangers
							       : ops->dangers;

		for (size_t i = 0; list && list != last && list[i].name; i++)
			if (!(*number)--)
				return &list[i];
		last = list;
	}
	return NULL;
}

const struct method_danger *method_danger(const struct device *device, unsigned int number)
{
	const struct method_danger *danger = method_find_danger(device, false, &number);

	return danger || !device->facts.has_images ? danger
						   : method_find_danger(device, true, &number);
}

void method_expect_images(struct device *device)
{
	const struct method_danger *danger;
	unsigned int count = 0, number = 0;

	device->facts.has_images = true;
	while ((danger = method_find_danger(device, true, &number))) {
		device->facts.images[danger->image].found = IMAGE_FATAL;
		number = ++count;
	}
}

/* What the driver itself takes needs no test. */
static bool method_probe_native(struct device *device, const char *extensions,
				enum import_type type, struct method *method)
{
	for (size_t i = 0; i < ROWS; i++)
		if (!rows[i]->create && rows[i]->probe(device, extensions, type, method)) {
			method->ops = rows[i];
			return true;
		}
	return false;
}

bool method_is_native(struct device *device, const char *extensions)
{
	bool is_native = true;

	for (int type = 0; type < IMPORT_TYPES; type++) {
		struct method method = { .ops = NULL };

		is_native &=
			method_probe_native(device, extensions, (enum import_type)type, &method);
	}
	return is_native;
}

const struct method_ops *method_find(const char *name, enum import_type type)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i]->create && rows[i]->types & 1u << type && !strcmp(rows[i]->name, name))
			return rows[i];
	return NULL;
}

static void method_recall_type(struct device *device, const struct facts *facts, const char *why,
			       enum import_type type)
{
	struct method *method = &device->method[type];

	if (!device->is_selected)
		why = device->unselected;
	else if (facts)
		why = facts->type[type].why;
	snprintf(method->why, sizeof(method->why), "%s", why);
	if (!device->is_selected)
		return;
	if (facts) {
		method->ops = method_find(facts->type[type].method, type);
		method->align = facts->type[type].align;
	}
	method->unknown = !method->ops && (!facts || facts->is_unknown);
}

void method_recall(struct device *device, const char *extensions, const struct facts *facts,
		   const char *why)
{
	method_probe_others(device, extensions);
	for (int type = 0; type < IMPORT_TYPES; type++)
		if (!method_probe_native(device, extensions, (enum import_type)type,
					 &device->method[type]))
			method_recall_type(device, facts, why, (enum import_type)type);
	if (facts)
		device->facts = *facts;
	method_log(device);
}
