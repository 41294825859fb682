/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/method.h"

#include <stdint.h>
#include <stdio.h>

#include "icd/probe/proof.h"
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

const struct proof *method_proof(const char *name, size_t length)
{
	for (size_t i = 0; i < ROWS; i++)
		for (size_t j = 0; rows[i]->proofs && rows[i]->proofs[j]; j++)
			if (proof_is_named(rows[i]->proofs[j], name, length))
				return rows[i]->proofs[j];
	return NULL;
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

/* A method without a test result may be better than the methods below. */
static void method_probe_type(struct device *device, const char *extensions, enum import_type type)
{
	struct method *method = &device->method[type], reason = { .is_reason = false };
	bool is_untested = false, hangs = false;

	for (size_t i = 0; i < ROWS && !method->ops && (device->may_compile || !method->untested);
	     i++) {
		method->untested = false;
		if (method_may_serve(device, rows[i]) &&
		    rows[i]->probe(device, extensions, type, method))
			method->ops = rows[i];
		else if (method->is_reason)
			reason = *method;
		is_untested |= method->untested;
		hangs |= method->hangs;
		method->is_reason = false;
	}
	if (!method->ops && reason.is_reason)
		*method = reason;
	if (!method->ops) {
		method->untested = is_untested;
		method->hangs = hangs;
	}
	if (!method->ops && !device->is_selected)
		snprintf(method->why, sizeof(method->why), "%s", device->unselected);
}

static void method_probe_others(struct device *device, const char *extensions)
{
	for (size_t i = 0; i < ROWS && !device->others; i++)
		if (rows[i]->takes_others && rows[i]->takes_others(device, extensions))
			device->others = rows[i];
}

void method_probe(struct device *device, const char *extensions)
{
	method_probe_others(device, extensions);
	for (int type = 0; type < IMPORT_TYPES; type++) {
		struct method *method = &device->method[type];

		if (!method->ops)
			method_probe_type(device, extensions, type);
		log_debug("device %p, %s: %s: %s", (void *)device->id, type_extension(type),
			  method->ops ? method->ops->name : "refused", method->why);
	}
}
