/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/rounds.h"

#include "icd/layer.h"

/* As the kernels' ulong4: numbers of elements, in the order of the kernel's work, and the width. */
struct rounds_order {
	cl_ulong at[ROUNDS_PLACES + 1];
};

/* Arguments of a native kernel; the driver fills in the buffers' addresses. */
struct native_args {
	volatile unsigned char *a, *b;
	struct rounds_order order;
};

static void CL_CALLBACK rounds_native_kernel(void *arg)
{
	const struct native_args *n = arg;
	const cl_ulong *at = n->order.at;

	n->a[at[1]] = n->b[at[0]];
	n->a[at[2]] = n->b[at[1]];
}

static cl_int rounds_enqueue_native(struct session *s, const struct rounds_order *order,
				    const cl_mem mems[2])
{
	struct native_args args = { .order = *order };
	const void *locations[] = { &args.a, &args.b };

	return next.clEnqueueNativeKernel(s->queue, rounds_native_kernel, &args, sizeof(args), 2,
					  mems, locations, 0, NULL, NULL);
}

static cl_int rounds_enqueue_compiled(struct session *s, cl_kernel kernel,
				      const struct rounds_order *order, const cl_mem mems[2])
{
	const struct session_arg args[] = {
		{ sizeof(mems[0]), &mems[0] },
		{ sizeof(mems[1]), &mems[1] },
		{ sizeof(*order), order },
	};

	return session_enqueue(s, kernel, args, 3);
}

static cl_int rounds_enqueue(struct session *s, const struct rounds *r, cl_kernel kernel,
			     const struct rounds_order *order, const cl_mem mems[2])
{
	cl_int err = r->edge ? r->edge(s->queue, true, r->arg) : CL_SUCCESS;

	for (int i = 0; i < 1 + r->twice && !err; i++)
		err = kernel ? rounds_enqueue_compiled(s, kernel, order, mems)
			     : rounds_enqueue_native(s, order, mems);
	if (!err && r->edge)
		err = r->edge(s->queue, false, r->arg);
	return err ? err : next.clFinish(s->queue);
}

static size_t rounds_offset(const struct rounds_shape *shape, size_t element)
{
	return element / shape->width * shape->pitch + element % shape->width * shape->element;
}

/* All bytes of an element are equal, so a pixel is a plain number in every format. */
static void rounds_fill(const struct rounds *r, size_t element, unsigned char value)
{
	volatile unsigned char *bytes = r->bytes + rounds_offset(&r->shape, element);

	for (size_t i = 0; i < r->shape.element; i++)
		bytes[i] = value;
}

static bool rounds_is_filled(const struct rounds *r, size_t element, unsigned char value)
{
	const volatile unsigned char *bytes = r->bytes + rounds_offset(&r->shape, element);

	for (size_t i = 0; i < r->shape.element; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static void rounds_elements(const struct rounds_shape *shape, size_t element[ROUNDS_PLACES])
{
	const size_t right = shape->width - 1, bottom = shape->height - 1;

	element[0] = 0;
	element[1] = bottom / 2 * shape->width + right / 2;
	element[2] = bottom * shape->width + right;
}

void rounds_places(const struct rounds_shape *shape, size_t at[ROUNDS_PLACES])
{
	rounds_elements(shape, at);
	for (int i = 0; i < ROUNDS_PLACES; i++)
		at[i] = rounds_offset(shape, at[i]);
}

cl_mem_flags rounds_flags(cl_mem_flags flags, bool reader)
{
	const cl_mem_flags alone = reader ? CL_MEM_WRITE_ONLY : CL_MEM_READ_ONLY;

	return flags & alone ? (flags & ~alone) | CL_MEM_READ_WRITE : flags;
}

/* In each round another place is the first. */
static struct rounds_order rounds_order(const struct rounds *r, unsigned int round)
{
	struct rounds_order order = { .at[ROUNDS_PLACES] = r->shape.width };
	size_t element[ROUNDS_PLACES];

	rounds_elements(&r->shape, element);
	for (unsigned int i = 0; i < ROUNDS_PLACES; i++)
		order.at[i] = element[(round + i) % ROUNDS_PLACES];
	return order;
}

/* Returns 1: passed, 0: failed, or an error of OpenCL. */
static cl_int rounds_run_one(struct session *s, const struct rounds *r, cl_kernel kernel,
			     const cl_mem mems[2], unsigned int round)
{
	const struct rounds_order order = rounds_order(r, round);
	const unsigned char seed = (unsigned char)(0x11 + 0x30 * round);
	cl_int err;

	for (unsigned int i = 0; i < ROUNDS_PLACES; i++)
		rounds_fill(r, order.at[i], (unsigned char)(seed + i));
	err = r->access ? r->access(false, r->arg) : CL_SUCCESS;
	if (!err)
		err = rounds_enqueue(s, r, kernel, &order, mems);
	if (!err && r->access)
		err = r->access(true, r->arg);
	if (err)
		return err;
	return rounds_is_filled(r, order.at[1], seed) && rounds_is_filled(r, order.at[2], seed);
}

/* @kernel: NULL, a native one. */
static cl_int rounds_run_kernel(struct session *s, const struct rounds *r, cl_kernel kernel)
{
	cl_mem mems[2];
	cl_int result;

	mems[0] = r->create(s->context, false, r->arg, &result);
	if (!mems[0])
		return result;
	mems[1] = r->create(s->context, true, r->arg, &result);
	if (mems[1]) {
		result = 1;
		for (unsigned int round = 0; round < r->count && result == 1; round++)
			result = rounds_run_one(s, r, kernel, mems, round);
		next.clReleaseMemObject(mems[1]);
	}
	next.clReleaseMemObject(mems[0]);
	return result;
}

/* The kernel is made anew each time: a driver may treat its first launch specially. */
static cl_int rounds_run_on_device(struct session *s, const struct rounds *r)
{
	cl_kernel kernel;
	cl_int result;

	if (!s->program)
		return rounds_run_kernel(s, r, NULL);
	kernel = created_or_null(next.clCreateKernel(s->program, s->kernel, &result), &result);
	if (result)
		return result;
	result = rounds_run_kernel(s, r, kernel);
	next.clReleaseKernel(kernel);
	return result;
}

cl_int rounds_run(struct session *s, const struct rounds *rounds)
{
	cl_int result = rounds_run_on_device(s, rounds);

	for (cl_uint i = 1; i < s->num_devices && result == 1; i++) {
		result = session_use_device(s, s->devices[i]);
		if (!result)
			result = rounds_run_on_device(s, rounds);
	}
	return result;
}
