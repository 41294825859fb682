/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method host_ptr: CL_MEM_USE_HOST_PTR, on a device with a proof of zero copy.  The
 * specification lets a driver cache the memory, so only a self-test decides.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "icd/driver_info.h"
#include "icd/methods/host_ptr/buffer.h"
#include "icd/methods/image_create.h"
#include "icd/objects/device.h"
#include "icd/objects/method.h"
#include "icd/methods/part.h"
#include "icd/selftest/selftest.h"
#include "util/log.h"

/* Without /proc the layer could check no import. */
static bool host_ptr_can_check_memory(void)
{
	char own = 0;
	const struct import_desc desc = {
		.type = IMPORT_HOST, .memory = &own, .size = sizeof(own), .access = IMPORT_READ
	};
	struct import_region *region;
	int ret = import_get(&desc, &region);

	if (!ret)
		import_put(region);
	return ret != -EIO;
}

static bool host_ptr_refuse(struct method *method, bool unknown, const char *why)
{
	method->unknown = unknown;
	snprintf(method->why, sizeof(method->why), "%s", why);
	return false;
}

/* False: no test would help, or no test can run now. */
static bool host_ptr_is_testable(const struct device *device, struct method *method)
{
	const cl_version version = device_version(device->id);

	if (!host_ptr_can_check_memory())
		return host_ptr_refuse(
			method, true,
			"host memory cannot be checked: /proc/self/maps cannot be read");
	if (!version)
		return host_ptr_refuse(method, true, "the device's version cannot be read");
	if (version < CL_MAKE_VERSION(1, 1, 0))
		return host_ptr_refuse(
			method, method->unknown,
			"OpenCL 1.0 does not tell when a buffer's memory is no more used");
	return true;
}

static bool host_ptr_test(struct device *device, struct method *method)
{
	enum tested found;

	if (!host_ptr_is_testable(device, method))
		return false;
	found = selftest_host_rule(device->id, &device->facts.rule, method->why,
				   sizeof(method->why));
	method->align = device->facts.rule.align;
	device->facts.is_best &= device->facts.rule.own_address && method->align == 1;
	method->unknown = found == UNTESTED;
	return found == PASSED;
}

/*
 * A mapped dma-buf is taken as the mapped memory, so the answer for host memory holds.  If
 * another method takes host memory, the test has not run yet.
 */
static bool host_ptr_test_mapping(struct device *device, struct method *method)
{
	const struct method *host = &device->method[IMPORT_HOST];

	if (host->ops && host->ops != &method_host_ptr_ops)
		return host_ptr_test(device, method);
	*method = *host;
	method->ops = NULL;
	return host->ops;
}

static bool host_ptr_probe(struct device *device, const char *extensions, enum import_type type,
			   struct method *method)
{
	(void)extensions;
	if (type == IMPORT_HOST)
		return host_ptr_test(device, method);
	return host_ptr_test_mapping(device, method);
}

static void host_ptr_describe(const struct device *device, enum import_type type,
			      struct method_memory *memory)
{
	(void)type;
	if (device->base_align < memory->address_align)
		memory->address_align = device->base_align;
	memory->size_align = 1;
}

/* Kernels that see the host's own addresses have nothing to copy to. */
static bool host_ptr_shares(const struct device *device)
{
	return device->facts.rule.own_address;
}

/* In the bracket of a dma-buf commands wait for user events (access.h). */
#define EVENTS_SAY(what)                                                                       \
	"commands that wait for user events, or their callbacks, " what " on this device, so " \
	"dma-bufs cannot be kept consistent"

void host_ptr_expect_events(struct device *device, unsigned int image)
{
	struct facts_type *facts = &device->facts.type[IMPORT_DMABUF];

	(void)image;
	if (device->method[IMPORT_DMABUF].ops != &method_host_ptr_ops)
		return;
	strcpy(facts->method, "-");
	strcpy(facts->why, EVENTS_SAY("crash or hang the driver"));
}

void host_ptr_test_events(struct device *device, unsigned int image)
{
	struct method *method = &device->method[IMPORT_DMABUF];
	enum tested found;

	(void)image;
	if (method->ops != &method_host_ptr_ops)
		return;
	found = selftest_user_event(device->id);
	if (found != PASSED) {
		method->ops = NULL;
		method->unknown = found == UNTESTED;
		device->facts.is_best = false;
		snprintf(method->why, sizeof(method->why), "%s",
			 found == UNTESTED ? EVENTS_SAY("could not be tested")
					   : EVENTS_SAY("do not work"));
	}
	method_note_type(device, IMPORT_DMABUF);
}

const struct method_ops method_host_ptr_ops = {
	.name = "host_ptr",
	.probe = host_ptr_probe,
	.create = host_ptr_create,
	.shares = host_ptr_shares,
	.create_sub_buffer = part_create_sub_buffer,
	.release_hidden = part_release,
	.create_image = image_create,
	.images = IMAGE_OF_BUFFER,
	.describe = host_ptr_describe,
};
