/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/address.h"

#include <stdlib.h>

#include "icd/layer.h"

struct address_args {
	void *buffer;
	uintptr_t *seen;
};

static void CL_CALLBACK address_native_kernel(void *arg)
{
	const struct address_args *args = arg;

	*args->seen = (uintptr_t)args->buffer;
}

/* After a clFinish() that fails the kernel may still run: its memory stays. */
static cl_int address_native(struct session *s, cl_mem buffer, uintptr_t *seen)
{
	struct address_args args = { .seen = calloc(1, sizeof(*seen)) };
	const void *location = &args.buffer;
	cl_int err;

	if (!args.seen)
		return CL_OUT_OF_HOST_MEMORY;
	err = next.clEnqueueNativeKernel(s->queue, address_native_kernel, &args, sizeof(args), 1,
					 &buffer, &location, 0, NULL, NULL);
	if (!err) {
		err = next.clFinish(s->queue);
		if (err)
			return err;
		*seen = *args.seen;
	}
	free(args.seen);
	return err;
}

static cl_int address_compiled(struct session *s, cl_mem buffer, uintptr_t *address)
{
	cl_ulong seen = 0;
	cl_int err;
	cl_mem out = created_or_null(
		next.clCreateBuffer(s->context, CL_MEM_READ_WRITE, sizeof(seen), NULL, &err), &err);
	const struct session_arg args[] = { { sizeof(out), &out }, { sizeof(buffer), &buffer } };

	if (!err)
		err = session_enqueue(s, "climport_selftest_address", args, 2);
	if (!err)
		err = next.clEnqueueReadBuffer(s->queue, out, CL_TRUE, 0, sizeof(seen), &seen, 0,
					       NULL, NULL);
	if (out)
		next.clReleaseMemObject(out);
	*address = (uintptr_t)seen;
	return err;
}

cl_int address_find(struct session *s, cl_mem buffer, uintptr_t *seen)
{
	return s->native ? address_native(s, buffer, seen) : address_compiled(s, buffer, seen);
}
