/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rounds of a self-test: two buffers, or images, are made over shared memory.  A kernel copies the host's element
 * to a second one by a, and that, read by b, to a third.  A driver with copies around each kernel loses one of them; a
 * driver that ignores where a sub-buffer begins, or the pitch, works on other bytes.
 */
#ifndef ICD_SELFTEST_ROUNDS_H
#define ICD_SELFTEST_ROUNDS_H

#include "icd/selftest/session.h"

#define ROUNDS_DEFAULT 3 /* the first use is special in drivers with lazy copies */
#define ROUNDS_PLACES 3

/* Elements in rows: bytes of a buffer, or pixels of an image. */
struct rounds_shape {
	size_t element, width, height, pitch; /* bytes; elements; rows; bytes from row to row */
};

#define ROUNDS_BYTES(size) ((struct rounds_shape){ 1, (size), 1, (size) })

struct rounds {
	volatile unsigned char *bytes; /* the first element, for the host */
	struct rounds_shape shape;

	/*
	 * Creates a buffer or an image.  The memory outlives it, also after an error.  The kernel writes through the
	 * first of the two, and reads through the second, the @reader.
	 */
	cl_mem (*create)(cl_context context, bool reader, void *arg, cl_int *err);

	/* NULL, or begins (@begins) and ends the CPU's access to the memory, which has begun. */
	cl_int (*access)(bool begins, void *arg);

	/* NULL, or enqueues a command before (@begins) and behind the kernels. */
	cl_int (*edge)(cl_command_queue queue, bool begins, void *arg);

	unsigned int count;

	/*
	 * A GPU with two buffers at different addresses does not order accesses by both within a kernel (PTX ISA:
	 * "virtual aliases"), so the kernel runs twice.  A driver with copies around each kernel may pass then.
	 */
	bool twice;
	void *arg;
};

/* On each device of the session.  Returns 1: zero copy, 0: not, or an error of OpenCL. */
cl_int rounds_run(struct session *s, const struct rounds *rounds);

/*
 * The flags of an object in place of the application's with @flags: the kernel has to write through one and read by the
 * other, the @reader, whatever the application's kernels do.
 */
cl_mem_flags rounds_flags(cl_mem_flags flags, bool reader);

/* The first, the middle and the last element, in bytes from the first. */
void rounds_places(const struct rounds_shape *shape, size_t at[ROUNDS_PLACES]);

#endif /* ICD_SELFTEST_ROUNDS_H */
