/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU cannot look at a device's memory.  So the driver writes through one buffer, and reads through a
 * second buffer over the same memory.
 */
#include "icd/methods/opaque_fd/large.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/methods/descriptor_buffer.h"
#include "icd/objects/device.h"
#include "icd/selftest/session.h"
#include "util/cl_names.h"
#include "util/log.h"

/* The largest allocation below: CUDA allocates multiples of 2 MiB, and makes 512 MiB of 511. */
#define LARGE_PART_MIB (LARGE_MIB - 2)

void large_expect_death(struct facts *facts)
{
	strcpy(facts->large_why, "climport-probe did not survive the test of it");
}

cl_int large_check_record(const struct device *device)
{
	char why[FACTS_WHY_SIZE];
	const struct facts *facts = device_tested(device->id, why);

	if (facts && facts->takes_large)
		return CL_SUCCESS;
	log_error("CUDA device memory of %u MiB and more is not imported: %s; allocate parts of %u "
		  "MiB at most",
		  LARGE_MIB, facts ? facts->large_why : why, LARGE_PART_MIB);
	return facts ? CL_INVALID_OPERATION : CL_OUT_OF_RESOURCES;
}

/*
 * The first, the middle and the last bytes.  Returns 1: the bytes that were written are read, 0: other bytes, or an error of
 * OpenCL.
 */
static cl_int large_copy(cl_command_queue queue, cl_mem writer, cl_mem reader)
{
	cl_int err = CL_SUCCESS;

	for (size_t i = 0; i < 3 && !err; i++) {
		const size_t at = (LARGE_LEAST - 4) / 8 * i * 4;
		const cl_uint value = 0x51a7e000 + (cl_uint)i;
		cl_uint seen = ~value;

		err = next.clEnqueueWriteBuffer(queue, writer, CL_TRUE, at, sizeof(value), &value,
						0, NULL, NULL);
		if (!err)
			err = next.clEnqueueReadBuffer(queue, reader, CL_TRUE, at, sizeof(seen),
						       &seen, 0, NULL, NULL);
		if (!err && seen != value)
			return 0;
	}
	return err ? err : 1;
}

static cl_mem large_buffer(const struct session *s, int fd, cl_int *err)
{
	return descriptor_buffer(s->context, CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
				 CL_MEM_READ_WRITE, fd, LARGE_LEAST, err);
}

static cl_int large_test_descriptor(struct session *s, int fd)
{
	cl_int result;
	cl_mem writer = large_buffer(s, fd, &result), reader;

	if (!writer)
		return result;
	reader = large_buffer(s, fd, &result);
	if (reader) {
		result = large_copy(s->queue, writer, reader);
		next.clReleaseMemObject(reader);
	}
	next.clReleaseMemObject(writer);
	return result;
}

/* The exporter of devices' own memory. */
static unsigned int large_exporter(void)
{
	unsigned int id = 0;

	while (id < IMPORT_EXPORTERS - 1 && !import_exporter_get(id)->has_device_memory)
		id++;
	return id;
}

/* Returns 1 or 0 as above, or an error of OpenCL. */
static cl_int large_test_memory(cl_device_id device, const unsigned char *uuid)
{
	struct import_region *region;
	struct import_opaque opaque;
	struct session s;
	cl_int result = CL_OUT_OF_RESOURCES;

	if (import_sample_on_device(large_exporter(), uuid, LARGE_LEAST, &region))
		return result;
	if (!import_opaque(region, uuid, &region->opaque, &opaque)) {
		result = session_begin_queue(&s, &device, 1);
		if (!result)
			result = large_test_descriptor(&s, opaque.fd);
		session_end(&s);
		close(opaque.fd);
	}
	import_put(region);
	return result;
}

/* What CUDA or OpenCL refuses, they may accept when there is more memory. */
void large_test(struct device *device)
{
	cl_int result;

	log_clear();
	result = large_test_memory(device->id, device->uuid);
	device->facts.takes_large = result == 1;
	device->facts.is_best &= result == 1;
	snprintf(device->facts.large_why, sizeof(device->facts.large_why), "%s",
		 result == 1   ? ""
		 : !result     ? "in a test, a second buffer over such memory did not "
				 "show what was written by the first"
		 : *log_last() ? log_last()
			       : cl_error_name(result));
}
