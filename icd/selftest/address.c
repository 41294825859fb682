/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/address.h"

#include <stdatomic.h>

#include "icd/layer.h"

#define SLOTS 64 /* more than threads that test at once */

struct address_args {
	void *buffer;
	atomic_uintptr_t *seen;
};

static void CL_CALLBACK address_native_kernel(void *arg)
{
	const struct address_args *args = arg;

	atomic_store(args->seen, (uintptr_t)args->buffer);
}

/* After a clFinish() that fails the kernel may still run: it writes to memory that stays. */
static cl_int address_native(struct session *s, cl_mem buffer, uintptr_t *seen)
{
	static atomic_uintptr_t slots[SLOTS];
	static atomic_uint used;
	struct address_args args = { .seen = &slots[atomic_fetch_add(&used, 1) % SLOTS] };
	const void *location = &args.buffer;
	cl_int err = next.clEnqueueNativeKernel(s->queue, address_native_kernel, &args,
						sizeof(args), 1, &buffer, &location, 0, NULL, NULL);

	if (!err)
		err = next.clFinish(s->queue);
	*seen = atomic_load(args.seen);
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
	return s->program ? address_compiled(s, buffer, seen) : address_native(s, buffer, seen);
}
