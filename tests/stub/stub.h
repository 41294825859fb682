/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake OpenCL driver.  It works: commands run on memory, on a thread for each
 * queue, when their wait lists allow.  It also tells what it saw (calls, last
 * arguments, order of events, live objects) and misbehaves when asked.
 *
 * As an ICD (libstubcl.so and the generated vendors/stub.icd) it is set up with
 * environment variables: STUB_COPYING=2 sets the option STUB_COPYING, and so on;
 * STUB_FAIL=[function:]N[:code] is stub_fail().  In process, link to stubcl and
 * use stub_dispatch.
 */
#ifndef TESTS_STUB_H
#define TESTS_STUB_H

#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_icd.h>
#include <stddef.h>
#include <stdint.h>

/* Of cl_khr_command_buffer_multi_device; headers of 2022 have no prototype. */
extern cl_command_buffer_khr CL_API_CALL clRemapCommandBufferKHR(
	cl_command_buffer_khr buffer, cl_bool automatic, cl_uint num_queues,
	const cl_command_queue *queues, cl_uint num_handles, const cl_mutable_command_khr *handles,
	cl_mutable_command_khr *handles_ret, cl_int *errcode_ret);

#define STUB_API __attribute__((visibility("default")))

/* The driver as a table; slots of functions that it lacks are NULL. */
extern STUB_API const struct _cl_icd_dispatch stub_dispatch;

/* The same of an OpenCL 1.2 driver: everything newer is NULL. */
extern STUB_API const struct _cl_icd_dispatch stub_dispatch_12;

/* Options hold from the next call on; those marked * only when set before the first call. */
enum stub_option {
	STUB_PLATFORMS,	       /* * 1 or 2 */
	STUB_DEVICES,	       /* * of each platform, 1 to 4; default 1 */
	STUB_CL12,	       /* * an OpenCL 1.2 driver with NULL slots */
	STUB_COPYING,	       /* a bit for each device: kernels work on a copy */
	STUB_COPYING_MAP,      /* a bit for each device: copied at map and unmap only */
	STUB_LOST_WRITES,      /* a bit for each device: host memory is copied in only */
	STUB_STALE_READS,      /* a bit for each device: it is copied out only */
	STUB_ZERO_COPY_ALIGN,  /* other host pointers and sizes are copied, as by STUB_COPYING */
	STUB_COPYING_IMAGES,   /* images over host memory are copies, buffers are not */
	STUB_NATIVE,	       /* a bit for each platform: has cl_arm_import_memory */
	STUB_ASYNC_DESTRUCTOR, /* milliseconds until destructor callbacks, on a thread */
	STUB_NO_IMAGE1D_DESTRUCTOR, /* no callback for 1D images made from buffers */
	STUB_ADDRESS_REUSE,	    /* the next object gets the last freed address */
	STUB_IMAGE2D_FROM_BUFFER,   /* cl_khr_image2d_from_buffer */
	STUB_LAZY,		    /* commands start only when flushed */
	STUB_CALLBACK_DELAY,	    /* milliseconds until event callbacks */
	STUB_CALLBACK_COMPLETE,	    /* event callbacks are told CL_COMPLETE of failures, too */
	STUB_NO_CALLBACK,	    /* event callbacks are never called */
	STUB_CALLBACK_LATE,	    /* event callbacks are called when the queue is empty */
	STUB_NO_FAILURE_CALLBACK,   /* a failure fails at once what waits, and calls no callback */
	STUB_OPAQUE,		    /* * discrete devices with cl_khr_external_memory_opaque_fd */
	STUB_KHR_DMABUF,	/* the extension cl_khr_external_memory_dma_buf, by name alone */
	STUB_OPAQUE_COPIES,	/* a bit for each device: it works on a copy of such memory */
	STUB_OPAQUE_CACHED,	/* a bit for each device: it keeps what it has read of it */
	STUB_MAX_ALLOC,		/* CL_DEVICE_MAX_MEM_ALLOC_SIZE */
	STUB_TRAILING_SPACE,	/* extension strings end with a space */
	STUB_NO_IMAGES,		/* CL_DEVICE_IMAGE_SUPPORT is CL_FALSE */
	STUB_NO_FAILURE_BEHIND, /* what is enqueued behind a failed event hangs for ever */
	STUB_ENQUEUE_DELAY,	/* milliseconds until a command is in its queue */
	STUB_KERNEL_FAIL,	/* kernels end with this (negative) status */
	STUB_FAULT_DELAY,	/* milliseconds that an injected fault takes */
	STUB_FAILED_HANDLE, /* a creating call that fails gives a handle, too; none may use it */
	STUB_NO_CONTEXT_DEVICES,       /* contexts say that they have no devices */
	STUB_FAULT_STAYS,	       /* an injected fault happens at each further call, too */
	STUB_NO_NATIVE_KERNEL,	       /* CL_EXEC_NATIVE_KERNEL is not there */
	STUB_GPU,		       /* CL_DEVICE_TYPE is CL_DEVICE_TYPE_GPU */
	STUB_HANG,		       /* clFinish does not return while this is set */
	STUB_FINISH_EARLY,	       /* clFinish does not wait for commands with wait lists */
	STUB_COPYING_READ_ONLY,	       /* CL_MEM_READ_ONLY host pointers are copied by kernels */
	STUB_COPYING_WRITE_ONLY,       /* CL_MEM_WRITE_ONLY ones */
	STUB_COPYING_ABOVE,	       /* those of more bytes than this, if it is not 0 */
	STUB_COPYING_FILES,	       /* mappings of files */
	STUB_COPYING_SHARED,	       /* mappings of shared memory, dma-bufs among them */
	STUB_COPYING_DMABUFS,	       /* mappings of (fake) dma-bufs */
	STUB_COPYING_UNWRITABLE,       /* mappings without write permission */
	STUB_COPYING_IMAGES_READ_ONLY, /* CL_MEM_READ_ONLY images over host memory are copies */
	STUB_COPYING_HOST_ACCESS,      /* objects with CL_MEM_HOST_* flags are copied by kernels */
	STUB_COPYING_SEVERAL,	       /* host pointers to more than one mapping */
	STUB_COPYING_CONTEXTS,	       /* those in contexts of several devices */
	STUB_COPYING_TMPFS,	       /* mappings of files on tmpfs */
	STUB_COPYING_IMAGES_ABOVE,     /* images of more rows than this, if it is not 0 */
	STUB_COPYING_IMAGES_ALIGN,     /* images at other addresses */
	STUB_COPYING_FLOATS,	       /* images of CL_FLOAT */
	STUB_PIN_LIMIT,		 /* one host pointer has no more bytes than this, if it is not 0 */
	STUB_STACK,		 /* bytes of its stack that clBuildProgram uses */
	STUB_FORKS,		 /* each call forks first */
	STUB_COMMAND_PROPERTIES, /* cl_khr_command_buffer 0.9.5: recording has a list of properties */
	STUB_COMMAND_ARRAYS,	 /* its mutable_dispatch 0.9.2: updates are arrays */
	STUB_COMMAND_NAMED, /* who reports the two: 1 the device, 2 the platform; default both */
	STUB_NOTHING_FAIL,  /* markers, barriers and migrations end with this (negative) status */
	STUB_UNNAMED, /* functions that a platform does not name: 1 clIcdGetPlatformIDsKHR, 2 all */
	STUB_HANG_FLUSH,     /* clFlush does not return while this is set */
	STUB_OWN_REFERENCES, /* contexts report the application's references alone */
	STUB_NUM_OPTIONS
};

/* The classes of objects, for stub_live(). */
enum stub_kind {
	STUB_FREE,
	STUB_PLATFORM,
	STUB_DEVICE,
	STUB_CONTEXT,
	STUB_QUEUE,
	STUB_MEM,
	STUB_SAMPLER,
	STUB_PROGRAM,
	STUB_KERNEL,
	STUB_EVENT,
	STUB_COMMAND_BUFFER,
	STUB_NUM_KINDS
};

STUB_API void stub_set(enum stub_option option, long value);
STUB_API long stub_get(enum stub_option option);

/* Another driver, by its versions, for other options in the environment: results may be kept. */
STUB_API const char *stub_driver_version(void);

/* CL_DEVICE_UUID_KHR of a device by its index, with STUB_OPAQUE. */
STUB_API void stub_uuid(unsigned device, unsigned char uuid[16]);

/* Options, faults, counters and trace as at start, without the environment's. */
STUB_API void stub_reset(void);

/*
 * The @nth call from now that can fail, or the @nth of @function alone, returns
 * @code and does nothing.  Those that cannot: retain, release, address queries,
 * and clSetUserEventStatus, for which no caller could make up.  @nth 0: no
 * fault.  stub_failed() tells whether it has happened.
 */
STUB_API void stub_fail(const char *function, unsigned long nth, cl_int code);

/* A code for stub_fail() of a creating call: success, and no handle. */
#define STUB_NO_HANDLE 0x5a5a

/* What failed creating calls give with STUB_FAILED_HANDLE; each use is traced as "dead handle". */
STUB_API void *stub_dead_handle(void);
STUB_API int stub_failed(void);

/* Calls since stub_reset(), of @function or (NULL) of all that can fail. */
STUB_API unsigned long stub_calls(const char *function);

/* Argument @i of the last call of @function; 0 when there was none. */
STUB_API uintptr_t stub_arg(const char *function, unsigned i);

/* Objects alive; of all kinds but platforms and devices. */
STUB_API long stub_live(enum stub_kind kind);
STUB_API long stub_live_all(void);

/* Waits, at most two seconds, until no more than @count objects are alive. */
STUB_API int stub_live_settles(long count);

/* An uncounted look at whether @handle is a live object of @kind. */
STUB_API int stub_is_live(const void *handle, enum stub_kind kind);

/*
 * What happened, in order: "kernel NAME begin", "kernel NAME end", "sync START
 * RW" (from fake_dmabuf.c) and what tests add.  stub_trace_find() gives the
 * index of the first entry from @from on that begins with @text, or -1.
 */
STUB_API void stub_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
STUB_API int stub_trace_find(const char *text, int from);
STUB_API int stub_trace_count(const char *text);
STUB_API void stub_trace_clear(void);
STUB_API void stub_trace_print(void);

#endif
