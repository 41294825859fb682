/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method host_ptr: CL_MEM_USE_HOST_PTR, on a device with a proof of zero copy.  The
 * specification lets a driver cache the memory, so only a self-test decides.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "icd/methods/host_ptr/buffer.h"
#include "icd/methods/host_ptr/buffer_class.h"
#include "icd/methods/host_ptr/image_create.h"
#include "icd/methods/host_ptr/image_proof.h"
#include "icd/methods/method.h"
#include "icd/methods/part.h"
#include "icd/selftest/result.h"
#include "icd/selftest/selftest.h"
#include "util/log.h"

/* 1, 64, a page, or 0 for a copying device. */
static bool host_ptr_is_alignment(long align)
{
	return align >= 0 && align <= sysconf(_SC_PAGESIZE) && !(align & (align - 1));
}

static bool host_ptr_recall(const struct device *device, struct method *method)
{
	long align;

	if (!result_get(device, "host_ptr", &align))
		return false;
	if (align == RESULT_HANGS) {
		snprintf(method->why, sizeof(method->why),
			 "the self-test of CL_MEM_USE_HOST_PTR did not end, less than an hour ago");
		method->hangs = true;
		return true;
	}
	if (!host_ptr_is_alignment(align))
		return false;
	method->align = (size_t)align;
	if (align)
		snprintf(method->why, sizeof(method->why),
			 "CL_MEM_USE_HOST_PTR is zero copy by self-test, alignment %ld", align);
	else
		snprintf(method->why, sizeof(method->why),
			 "CL_MEM_USE_HOST_PTR copies on this device");
	return true;
}

/* Without /proc the layer could check no import. */
static bool host_ptr_can_check_memory(void)
{
	char own = 0;
	const struct import_desc desc = { IMPORT_HOST, &own, sizeof(own), IMPORT_READ, false };
	struct import_region *region;
	int ret = import_get(&desc, &region);

	if (!ret)
		import_put(region);
	return ret != -EIO;
}

static bool host_ptr_refuse(struct method *method, bool untested, const char *why)
{
	method->untested = untested;
	snprintf(method->why, sizeof(method->why), "%s", why);
	return false;
}

/* False: no test would help, or no test can run at the moment. */
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
			method, method->untested,
			"OpenCL 1.0 does not tell when a buffer's memory is no more used");
	return true;
}

static bool host_ptr_run_test(const struct device *device, struct method *method)
{
	enum tested found =
		selftest_host_ptr(device->id, &method->align, method->why, sizeof(method->why));

	method->untested = found == UNTESTED;
	if (found == PASSED || found == FAILED)
		result_set(device, "host_ptr", (long)method->align);
	if (found == HUNG) {
		result_set(device, "host_ptr", RESULT_HANGS);
		method->hangs = true;
	}
	return found == PASSED;
}

static bool host_ptr_test(const struct device *device, struct method *method)
{
	if (!host_ptr_is_testable(device, method))
		return false;
	if (host_ptr_recall(device, method))
		return method->align;
	if (!device->may_compile && selftest_needs_compiler(device->id))
		return host_ptr_refuse(method, true,
				       "the self-test of CL_MEM_USE_HOST_PTR has to be compiled, "
				       "and the first import compiles it");
	return host_ptr_run_test(device, method);
}

static enum tested host_ptr_test_user_events(const struct device *device)
{
	enum tested found;
	long passed;

	if (result_get(device, "user_event", &passed))
		return passed > 0 ? PASSED : passed == RESULT_HANGS ? HUNG : FAILED;
	found = selftest_user_event(device->id);
	if (found == PASSED || found == FAILED)
		result_set(device, "user_event", found == PASSED);
	if (found == HUNG)
		result_set(device, "user_event", RESULT_HANGS);
	return found;
}

/* In the bracket of a dma-buf commands wait for user events (access.h). */
static bool host_ptr_test_bracket(const struct device *device, struct method *method)
{
	static const char *const says[] = {
		[UNTESTED] = "could not be tested",
		[FAILED] = "do not work",
		[BROKEN] = "do not work",
		[HUNG] = "did not end in time",
	};
	enum tested found = host_ptr_test_user_events(device);

	method->untested = found == UNTESTED;
	if (found == HUNG)
		method->hangs = true;
	if (found != PASSED)
		snprintf(method->why, sizeof(method->why),
			 "commands that wait for user events, or their callbacks, %s on this "
			 "device, so "
			 "dma-bufs cannot be kept consistent",
			 says[found]);
	return found == PASSED;
}

/*
 * A mapped dma-buf is taken as the mapped memory, so the answer for host memory holds.  If
 * another method takes host memory, the test has not run yet.
 */
static bool host_ptr_test_mapping(const struct device *device, struct method *method)
{
	const struct method *host = &device->method[IMPORT_HOST];

	if (host->ops && host->ops != &method_host_ptr_ops)
		return host_ptr_test(device, method);
	*method = *host;
	method->ops = NULL;
	return host->ops;
}

static bool host_ptr_probe(const struct device *device, const char *extensions,
			   enum import_type type, struct method *method)
{
	(void)extensions;
	if (type == IMPORT_HOST)
		return !method->hangs && host_ptr_test(device, method); /* no test behind a hang */
	return host_ptr_test_mapping(device, method) && host_ptr_test_bracket(device, method);
}

static void host_ptr_describe(const struct device *device, enum import_type type,
			      struct method_memory *memory)
{
	(void)type;
	if (device->base_align < memory->address_align)
		memory->address_align = device->base_align;
	memory->size_align = 1;
}

static const struct proof *const host_ptr_proofs[] = { &image_proof, NULL };

const struct method_ops method_host_ptr_ops = {
	.name = "host_ptr",
	.probe = host_ptr_probe,
	.create = host_ptr_create,
	.prove = host_ptr_prove,
	.prove_buffer = buffer_class_prove_buffer,
	.create_sub_buffer = part_create_sub_buffer,
	.release_hidden = part_release,
	.create_image = image_create,
	.describe = host_ptr_describe,
	.proofs = host_ptr_proofs,
};
