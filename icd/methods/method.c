/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/driver_info.h"
#include "icd/methods/host_ptr/buffer.h"
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
		if (method_may_serve(device, rows[type][i]) &&
		    rows[type][i]->probe(device, extensions, type, method))
			method->ops = rows[type][i];
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
	if (native_takes_others(device, extensions))
		device->others = &method_native_ops;
}

static void method_log(const struct device *device)
{
	for (int type = 0; type < IMPORT_TYPES; type++)
		log_debug("device %p, %s: %s: %s", (void *)device->id, type_extension(type),
			  device->method[type].ops ? device->method[type].ops->name : "refused",
			  device->method[type].why);
}

void method_note_type(struct device *device, enum import_type type)
{
	const struct method *method = &device->method[type];
	struct facts_type *facts = &device->facts.type[type];
	const char *name = method->ops ? method->ops->name : "-";

	device->facts.is_unknown |= method->unknown;
	snprintf(facts->method, sizeof(facts->method), "%s", name);
	facts->align = method->align;
	memcpy(facts->why, method->why, sizeof(facts->why));
}

/* In the worst case the driver does not survive such images. */
static void method_expect_image(struct device *device, unsigned int image)
{
	device->facts.images[image].found = IMAGE_FATAL;
}

static void method_test_image(struct device *device, unsigned int image)
{
	const struct method_ops *ops =
		image < IMAGE_RULE(IMAGE_OF_DMABUF, false) ? &method_host_ptr_ops : &method_khr_ops;

	device->facts.is_unknown |=
		!selftest_image(device, ops, image, &device->facts.images[image]);
}

#define IMAGE(name, method, image)                                                   \
	{                                                                            \
		name, &(method), true, method_expect_image, method_test_image, image \
	}

/* In the order in which they run: images from the harmless to what drivers do not survive. */
static const struct method_danger dangers[] = {
	{ "user_events", &method_host_ptr_ops, false, host_ptr_expect_events, host_ptr_test_events,
	  0 },
	{ "large_memory", &method_opaque_fd_ops, true, large_expect, large_test, 0 },
	IMAGE("image_1d_of_buffer", method_host_ptr_ops, IMAGE_RULE(IMAGE_OF_BUFFER, false)),
	IMAGE("image_2d_of_buffer", method_host_ptr_ops, IMAGE_RULE(IMAGE_OF_BUFFER, true)),
	IMAGE("image_2d_of_memory", method_host_ptr_ops, IMAGE_RULE(IMAGE_OF_MEMORY, true)),
	IMAGE("image_1d_of_sub_buffer", method_host_ptr_ops,
	      IMAGE_RULE(IMAGE_OF_SUB_BUFFER, false)),
	IMAGE("image_2d_of_sub_buffer", method_host_ptr_ops, IMAGE_RULE(IMAGE_OF_SUB_BUFFER, true)),
	IMAGE("image_1d_of_dma_buf", method_khr_ops, IMAGE_RULE(IMAGE_OF_DMABUF, false)),
	IMAGE("image_2d_of_dma_buf", method_khr_ops, IMAGE_RULE(IMAGE_OF_DMABUF, true)),
	IMAGE("image_1d_of_part", method_khr_ops, IMAGE_RULE(IMAGE_OF_PART_OF_DMABUF, false)),
	IMAGE("image_2d_of_part", method_khr_ops, IMAGE_RULE(IMAGE_OF_PART_OF_DMABUF, true)),
};

/* A driver that makes 2D images from buffers makes them; else the layer does, over the memory. */
static bool method_makes_image(const struct device *device, unsigned int image)
{
	const bool is_2d = image % 2, is_of_memory = image / 2 == IMAGE_OF_MEMORY;

	return !is_2d || is_of_memory != device->image2d_from_buffer;
}

static bool method_concerns(const struct device *device, const struct method_danger *danger)
{
	bool is_used = false;

	for (int type = 0; type < IMPORT_TYPES; type++)
		is_used |= device->method[type].ops == danger->ops;
	if (!danger->with_images)
		return is_used;
	return is_used && device->facts.has_images && method_makes_image(device, danger->image);
}

const struct method_danger *method_danger(const struct device *device, unsigned int number)
{
	for (size_t i = 0; i < sizeof(dangers) / sizeof(dangers[0]); i++)
		if (method_concerns(device, &dangers[i]) && !number--)
			return &dangers[i];
	return NULL;
}

static void method_expect(struct device *device, bool with_images)
{
	const struct method_danger *danger;

	for (unsigned int i = 0; (danger = method_danger(device, i)); i++)
		if (danger->with_images == with_images)
			danger->expect(device, danger->image);
}

void method_expect_images(struct device *device)
{
	device->facts.has_images = true;
	method_expect(device, true);
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
	facts->driver_dma_bufs = driver_imports_dma_bufs(device->id);
	method_expect(device, false);
	method_log(device);
}

/* What the driver itself takes needs no test. */
static bool method_probe_native(struct device *device, const char *extensions,
				enum import_type type, struct method *method)
{
	if (!method_native_ops.probe(device, extensions, type, method))
		return false;
	method->ops = &method_native_ops;
	return true;
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
		if (rows[type][i]->create && !strcmp(rows[type][i]->name, name))
			return rows[type][i];
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
