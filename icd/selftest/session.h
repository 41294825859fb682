/* SPDX-License-Identifier: Apache-2.0 */
/* A session of self-tests: a context with a queue, and a program unless native kernels do the test. */
#ifndef ICD_SELFTEST_SESSION_H
#define ICD_SELFTEST_SESSION_H

#include <stdbool.h>

#include "icd/selftest/selftest.h"

struct session {
	const cl_device_id *devices; /* of the context */
	cl_uint num_devices;
	cl_context context;
	cl_command_queue queue; /* of the device under test */
	cl_program program;	/* NULL: native kernels */
	const char *kernel;	/* of rounds */
};

struct session_arg {
	size_t size;
	const void *value;
};

/*
 * A context with a queue of the first device, for buffers: the kernels are compiled if a device needs the compiler.
 * @devices are the caller's, for as long as the session lasts.  After an error, too, end follows.
 */
cl_int session_begin(struct session *s, const cl_device_id *devices, cl_uint num_devices);

/* Likewise, without kernels. */
cl_int session_begin_queue(struct session *s, const cl_device_id *devices, cl_uint num_devices);

/* Compiles @kernel of a @source for a session without kernels. */
cl_int session_build(struct session *s, const char *source, const char *kernel);

/* May run on the application's thread: a driver may wait for a queue's thread. */
void session_end(struct session *s);

/* Later rounds run on @device, a device of the session. */
cl_int session_use_device(struct session *s, cl_device_id device);

/* Enqueues a work-item of a compiled kernel. */
cl_int session_enqueue(struct session *s, cl_kernel kernel, const struct session_arg *args,
		       cl_uint count);

/* @result: 1 for zero copy, 0 for copied, or an error of OpenCL. */
enum tested session_judge(cl_int result);

#endif /* ICD_SELFTEST_SESSION_H */
