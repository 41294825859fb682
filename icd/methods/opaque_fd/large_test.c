/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU cannot look at a device's memory.  So the driver writes through one buffer, and reads through a
 * second buffer over the same memory.
 */
#include "icd/methods/opaque_fd/large_test.h"

#include <stdio.h>
#include <unistd.h>

#include "icd/layer.h"
#include "icd/methods/opaque_fd/buffer.h"
#include "icd/selftest/rounds.h"
#include "icd/selftest/session.h"
#include "util/cl_names.h"
#include "util/log.h"

/* Returns 1: the bytes that were written are read, 0: other bytes, or an error of OpenCL. */
static cl_int large_test_copy(cl_command_queue queue, cl_mem writer, cl_mem reader, size_t at,
			      cl_uint value)
{
	cl_uint seen = ~value;
	cl_int err = next.clEnqueueWriteBuffer(queue, writer, CL_TRUE, at, sizeof(value), &value, 0,
					       NULL, NULL);

	if (!err)
		err = next.clEnqueueReadBuffer(queue, reader, CL_TRUE, at, sizeof(seen), &seen, 0,
					       NULL, NULL);
	return err ? err : seen == value;
}

static cl_int large_test_places(cl_command_queue queue, cl_mem writer, cl_mem reader, size_t size)
{
	size_t at[SELFTEST_PLACES];
	cl_int result = 1;

	rounds_places(size, at);
	for (cl_uint i = 0; i < SELFTEST_PLACES && result == 1; i++)
		result = large_test_copy(queue, writer, reader, at[i], 0x51a7e000 + i);
	return result;
}

static cl_int large_test_buffers(struct session *s, int fd, size_t size)
{
	cl_int result;
	cl_mem writer = opaque_fd_buffer(s->context, CL_MEM_READ_WRITE, fd, size, &result), reader;

	if (!writer)
		return result;
	reader = opaque_fd_buffer(s->context, CL_MEM_READ_WRITE, fd, size, &result);
	if (reader) {
		result = large_test_places(s->queue, writer, reader, size);
		next.clReleaseMemObject(reader);
	}
	next.clReleaseMemObject(writer);
	return result;
}

static cl_int large_test_descriptor(cl_device_id device, int fd, size_t size)
{
	struct session s;
	cl_int result = session_begin(&s, &device, 1, true);

	if (!result)
		result = large_test_buffers(&s, fd, size);
	session_end(&s);
	return result;
}

/* The exporter of devices' own memory. */
static unsigned int large_test_exporter(void)
{
	unsigned int id = 0;

	while (id < IMPORT_EXPORTERS - 1 && !import_exporter_get(id)->has_device_memory)
		id++;
	return id;
}

/* Returns 1 or 0 as above, or an error of OpenCL. */
static cl_int large_test_memory(cl_device_id device, const unsigned char *uuid, size_t size)
{
	const unsigned int exporter = large_test_exporter();
	struct import_region *region;
	struct import_opaque opaque;
	cl_int result = CL_OUT_OF_RESOURCES;

	if (import_sample_on_device(exporter, uuid, size, &region))
		return result;
	if (!import_opaque(region, uuid, &region->opaque, &opaque)) {
		result = large_test_descriptor(device, opaque.fd, size);
		close(opaque.fd);
	}
	import_put(region);
	return result;
}

enum verdict large_test(cl_device_id device, const unsigned char uuid[IMPORT_UUID_SIZE],
			size_t size, char why[VERDICT_WHY_SIZE])
{
	cl_int result;

	log_clear();
	result = large_test_memory(device, uuid, size);
	if (result == 1)
		return VERDICT_PASSED;
	if (!result) {
		snprintf(why, VERDICT_WHY_SIZE, "the driver shows other memory");
		return VERDICT_FAILED;
	}
	if (*log_last())
		snprintf(why, VERDICT_WHY_SIZE, "%s", log_last());
	else
		snprintf(why, VERDICT_WHY_SIZE, "%s", cl_error_name(result));
	return VERDICT_UNKNOWN;
}
