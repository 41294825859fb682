/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake OpenCL driver.  Commands really run, on memory, on a thread for each queue, once their
 * wait lists allow.  The stub also reports what happened (calls, last arguments, order of events,
 * live objects), and misbehaves on request.
 *
 * As an ICD (libstubcl.so and the generated vendors/stub.icd) the stub takes options from
 * environment variables: STUB_COPYING=2 sets the option STUB_COPYING, and so on;
 * STUB_FAIL=[function:]N[:code] is stub_fail().  In process, link to stubcl and use stub_dispatch.
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

/* Part of cl_khr_command_buffer_multi_device; headers of 2022 have no prototype. */
extern cl_command_buffer_khr CL_API_CALL clRemapCommandBufferKHR(
	cl_command_buffer_khr buffer, cl_bool automatic, cl_uint num_queues,
	const cl_command_queue *queues, cl_uint num_handles, const cl_mutable_command_khr *handles,
	cl_mutable_command_khr *handles_ret, cl_int *errcode_ret);

#define STUB_API __attribute__((visibility("default")))

/* The driver as a dispatch table.  Slots of missing functions are NULL. */
extern STUB_API const struct _cl_icd_dispatch stub_dispatch;

/* The table of an OpenCL 1.2 driver: the slots of newer functions are NULL. */
extern STUB_API const struct _cl_icd_dispatch stub_dispatch_12;

/*
 * An option holds from the next call on.  An option marked * must be set before the first call.
 *
 * "Bits of devices": bit i of the value stands for device i.  A copying device lets commands work
 * on a copy of host memory.
 */
/* Instead of milliseconds: until the option is set anew. */
#define STUB_HELD (-1)

enum stub_option {
	STUB_PLATFORMS,	       /* * 1 or 2 */
	STUB_DEVICES,	       /* * devices of each platform, 1 to 4; default 1 */
	STUB_CL12,	       /* * an OpenCL 1.2 driver with NULL slots */
	STUB_COPYING,	       /* bits of devices: kernels work on a copy */
	STUB_COPYING_MAP,      /* bits of devices: copied only at map and unmap */
	STUB_LOST_WRITES,      /* bits of devices: host memory is only copied in */
	STUB_STALE_READS,      /* bits of devices: host memory is only copied out */
	STUB_ZERO_COPY_ALIGN,  /* other host pointers and sizes are copied, as by STUB_COPYING */
	STUB_COPYING_IMAGES,   /* images over host memory are copies, buffers are not */
	STUB_NATIVE,	       /* bits of platforms: has cl_arm_import_memory */
	STUB_ASYNC_DESTRUCTOR, /* milliseconds until destructor callbacks, on a thread; STUB_HELD */
	STUB_NO_IMAGE1D_DESTRUCTOR, /* no callback for 1D images made from buffers */
	STUB_ADDRESS_REUSE,	    /* the next object gets the last freed address */
	STUB_IMAGE2D_FROM_BUFFER,   /* cl_khr_image2d_from_buffer */
	STUB_LAZY,		    /* commands start only when flushed */
	STUB_CALLBACK_DELAY,	    /* milliseconds until event callbacks */
	STUB_CALLBACK_COMPLETE,	    /* event callbacks get CL_COMPLETE for failures too */
	STUB_NO_CALLBACK,	    /* event callbacks are never called */
	STUB_CALLBACK_LATE,	    /* event callbacks come once the queue is empty */
	STUB_NO_FAILURE_CALLBACK, /* a failure fails waiting commands at once, without callbacks */
	STUB_OPAQUE,		  /* * discrete devices with cl_khr_external_memory_opaque_fd */
	STUB_KHR_DMABUF,	  /* cl_khr_external_memory_dma_buf: enum stub_khr */
	STUB_KHR_HABITS,	  /* bits: enum stub_khr_habit */
	STUB_OPAQUE_COPIES,	  /* bits of devices: works on a copy of opaque memory */
	STUB_OPAQUE_DIES,	  /* bits of devices: SIGSEGV for device memory from 512 MiB on */
	STUB_OPAQUE_WRONG,	  /* bits of devices: such memory is a copy */
	STUB_MAX_ALLOC,		  /* CL_DEVICE_MAX_MEM_ALLOC_SIZE */
	STUB_TRAILING_SPACE,	  /* extension strings end with a space */
	STUB_NO_IMAGES,		  /* CL_DEVICE_IMAGE_SUPPORT is CL_FALSE */
	STUB_NO_FAILURE_BEHIND,	  /* a command behind a failed event hangs for ever */
	STUB_ENQUEUE_DELAY,	  /* milliseconds until a command is in the queue */
	STUB_KERNEL_FAIL,	  /* kernels end with the (negative) status */
	STUB_FAULT_DELAY,	  /* milliseconds that an injected fault takes */
	STUB_FAILED_HANDLE,	  /* a failing creating call also returns an unusable handle */
	STUB_NO_CONTEXT_DEVICES,  /* contexts report no devices */
	STUB_FAULT_STAYS,	  /* an injected fault repeats at each further call */
	STUB_NO_NATIVE_KERNEL,	  /* devices lack CL_EXEC_NATIVE_KERNEL */
	STUB_GPU,		  /* CL_DEVICE_TYPE is CL_DEVICE_TYPE_GPU */
	STUB_HANG,		  /* while set, clFinish does not return */
	/* clFinish does not wait for commands with wait lists; 2: it aborts; 3: of the second device */
	STUB_FINISH_EARLY,
	STUB_COPYING_READ_ONLY,	       /* CL_MEM_READ_ONLY host pointers are copied by kernels */
	STUB_COPYING_FIRST_LAUNCH,     /* ... by the first launch of each kernel object alone */
	STUB_COPYING_WRITE_ONLY,       /* CL_MEM_WRITE_ONLY host pointers are copied by kernels */
	STUB_COPYING_ABOVE,	       /* host pointers of more bytes are copied, unless 0 */
	STUB_COPYING_FILES,	       /* mappings of files are copied */
	STUB_COPYING_SHARED,	       /* mappings of shared memory and of dma-bufs are copied */
	STUB_COPYING_DMABUFS,	       /* mappings of (fake) dma-bufs are copied */
	STUB_COPYING_UNWRITABLE,       /* mappings without write permission are copied */
	STUB_COPYING_IMAGES_READ_ONLY, /* 1: images, too; more: those at no multiple of it */
	STUB_COPYING_HOST_ACCESS,      /* objects with CL_MEM_HOST_* flags are copied by kernels */
	STUB_COPYING_SEVERAL,	       /* host pointers to several mappings are copied */
	STUB_COPYING_CONTEXTS,	       /* contexts of several devices: imports are copied */
	STUB_COPYING_TMPFS,	       /* mappings of files on tmpfs are copied */
	STUB_COPYING_IMAGES_ABOVE,     /* images of more rows are copies, unless 0 */
	STUB_COPYING_IMAGES_ALIGN,     /* images at unaligned addresses are copies */
	STUB_COPYING_IMAGES_TIGHT,     /* images whose rows have no gap behind are copies */
	STUB_COPYING_IMAGES_ROWS, /* images whose rows are not of so many whole pixels are copies (zink) */
	STUB_PIN_LIMIT,		  /* a host pointer has at most so many bytes, unless 0 */
	STUB_STACK,		  /* bytes of stack for clBuildProgram */
	STUB_FORKS,		  /* each call forks first */
	STUB_COMMAND_PROPERTIES, /* cl_khr_command_buffer 0.9.5: recording takes properties */
	STUB_COMMAND_ARRAYS,	 /* mutable_dispatch 0.9.2: updates are arrays */
	STUB_COMMAND_NAMED,	 /* the two are reported by: 1 device, 2 platform, 3 both */
	STUB_NOTHING_FAIL,   /* markers, barriers and migrations end with the (negative) status */
	STUB_UNNAMED,	     /* functions without an address: 1 clIcdGetPlatformIDsKHR, 2 all */
	STUB_HANG_FLUSH,     /* while set, clFlush does not return */
	STUB_OWN_REFERENCES, /* contexts report the application's references alone */
	STUB_NO_CALLS_IN_CALLBACKS, /* a call from a memory object's destructor callback aborts */
	STUB_NO_CONTEXT_CALLBACKS,  /* clSetContextDestructorCallback aborts */
	STUB_IMAGES_AT_ROOT, /* images made from sub-buffers begin with the buffer (rusticl 25.0) */
	STUB_IMAGES_ALIGN,   /* images made from buffers begin at an aligned address, below maybe */
	STUB_IMAGES_PACKED, /* images made from buffers have rows without a gap, whatever the pitch */
	STUB_ANY_POINTER, /* images made from buffers take a pointer (PoCL, Intel's runtime) and any flags */
	STUB_ANY_PITCH,	      /* a row pitch below the width is taken (rusticl) */
	STUB_IMAGE1D_OF_PART, /* 1D images are made from sub-buffers, too */
	STUB_UNALIGNED_FAIL,  /* host pointers and sizes within a page get the (negative) error */
	STUB_NATIVE_TYPES, /* of STUB_NATIVE: enum stub_native; default host memory and dma-bufs */
	STUB_NATIVE_NAMED, /* the names of STUB_NATIVE are the platform's; a device's are garbage */
	STUB_NATIVE_LACKING, /* bits of devices: none of the names of STUB_NATIVE */
	STUB_PARENTS,	     /* of devices: enum stub_parents */
	STUB_LAST_FIRST,     /* out-of-order queues run the last command that may run */
	STUB_PAGES_ALONE,    /* bits of devices: host pointers and sizes within a page are copied */
	STUB_PART_AT_PAGE,   /* bits of devices: CL_DEVICE_MEM_BASE_ADDR_ALIGN is a page */
	STUB_IMAGES_END,    /* the signal that ends a process with an image of STUB_IMAGES_END_OF */
	STUB_IMAGES_END_OF, /* bits: 1 host memory, 2 a buffer over host memory, 4 a part of one */
	STUB_PRELOADED,	    /* calls of stub_preloaded_fn */
	STUB_ADDS_VARIABLE, /* the driver adds to its variable: 1 at the first list of devices, 2 at the start */
	STUB_DROP_DELAY, /* milliseconds from a command's end until its references are dropped */
	STUB_TWO_FAILURES_ABORT, /* a command aborts if two events of its wait list fail (Intel) */
	/* Failed commands: CL_COMPLETE, and for callbacks the status of the wait list (Intel) */
	STUB_FAILED_COMPLETE,
	STUB_NUM_OPTIONS
};

/*
 * STUB_PRELOADED: clCreateContext calls stub_preloaded() for each device of the new context, and a query for a device's
 * extensions stub_preloaded_query(), of a library that is preloaded; without it they abort.  Returns the call's error.
 */
typedef cl_int stub_preloaded_fn(unsigned int index);

/* The answers of a driver for the parents of devices. */
enum stub_parents {
	STUB_PARENTS_RIGHT,
	STUB_PARENTS_SELF,  /* a root device is its own parent */
	STUB_PARENTS_CYCLE, /* two root devices are each other's parent */
	STUB_PARENTS_NONE,  /* success, and no answer */
};

/* What a driver with cl_arm_import_memory takes: bits. */
enum stub_native {
	STUB_NATIVE_HOST = 1 << 0,
	STUB_NATIVE_DMA_BUF = 1 << 1,
	STUB_NATIVE_ANDROID = 1 << 2,	/* Android's hardware buffers: a pointer to anything */
	STUB_NATIVE_PROTECTED = 1 << 3, /* dma-bufs of protected memory */
};

/* The form of cl_khr_external_memory with dma-bufs. */
enum stub_khr {
	STUB_KHR_NONE,
	STUB_KHR_NAME,	    /* the extension's name alone */
	STUB_KHR_WORKS,	    /* the device takes dma-bufs */
	STUB_KHR_UNNAMED,   /* the same, and cl_khr_external_memory_dma_buf is not reported (NEO) */
	STUB_KHR_NO_HANDLE, /* functions and names, but no handle type */
	STUB_KHR_ELSEWHERE, /* functions alone, for other devices of the platform (rusticl 26.2) */
};

/* Bad habits of drivers with cl_khr_external_memory. */
enum stub_khr_habit {
	STUB_KHR_UNRELATED = 1 << 0,	 /* a dma-buf's buffer has memory of its own, in silence */
	STUB_KHR_NOT_ZERO = 1 << 1,	 /* descriptor 0 is taken for none: memory of its own */
	STUB_KHR_CLOSES = 1 << 2,	 /* the descriptor is closed at once, also on failure */
	STUB_KHR_REFUSES = 1 << 3,	 /* CL_INVALID_VALUE for each dma-buf */
	STUB_KHR_COPIES = 1 << 4,	 /* copied in by an acquire, and out by a release */
	STUB_KHR_NO_FUNCTIONS = 1 << 5,	 /* neither acquire nor release has an address */
	STUB_KHR_NEEDS_ACQUIRE = 1 << 6, /* without an acquire kernels work on other memory */
	STUB_KHR_NO_EVENT = 1 << 8,	 /* acquire and release succeed, and give no event */
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

STUB_API void stub_set(enum stub_option option, int64_t value);
STUB_API int64_t stub_get(enum stub_option option);

/*
 * The driver's version.  Different options in the environment give a different version, so a result
 * kept for a version holds for the options.
 */
STUB_API const char *stub_driver_version(void);

/* CL_DEVICE_UUID_KHR of the device with index @device, with STUB_OPAQUE. */
STUB_API void stub_uuid(unsigned device, unsigned char uuid[16]);

/*
 * Resets options, faults, counters and trace to their state at start, without options of the
 * environment.
 */
STUB_API void stub_reset(void);

/*
 * The @nth call from now that can fail, or the @nth call of @function, returns @code and has no
 * effect.  @nth 0 clears the fault.  stub_failed() tells whether the fault has happened.
 *
 * Some calls fail by name alone, since few callers recover: retain, release, address queries and
 * clSetUserEventStatus.
 */
STUB_API void stub_fail(const char *function, unsigned long nth, cl_int code);

/* A code for stub_fail() of a creating call: success, and no handle. */
#define STUB_NO_HANDLE 0x5a5a

/*
 * The handle that failed creating calls return with STUB_FAILED_HANDLE.  Each use is traced as
 * "dead handle".
 */
STUB_API void *stub_dead_handle(void);
STUB_API int stub_failed(void);

/*
 * Counts calls since stub_reset(): of @function, or of all functions that can fail if @function is
 * NULL.
 */
STUB_API unsigned long stub_calls(const char *function);

/* Argument @i of the last call of @function, or 0 before the first call. */
STUB_API uintptr_t stub_arg(const char *function, unsigned i);

/*
 * Counts live objects: of @kind, or of all kinds but platforms and devices.  As in drivers, a
 * queue's thread drops the references of a command after the command's end: the count waits, a
 * second at most, until the threads have dropped them.
 */
STUB_API long stub_live(enum stub_kind kind);
STUB_API long stub_live_all(void);

/* Waits, at most two seconds, until no more than @count objects are alive. */
STUB_API int stub_live_settles(long count);

/* Whether @handle is a live object of @kind.  The query is not counted as a call. */
STUB_API int stub_is_live(const void *handle, enum stub_kind kind);

/*
 * The trace, in order: "kernel NAME begin", "kernel NAME end", "sync START NAME rw" (from
 * fake_dmabuf.c) and entries that tests add.  stub_trace_find() returns the index of the first
 * entry at @from or later that begins with @text, or -1.
 */
STUB_API void stub_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
STUB_API int stub_trace_find(const char *text, int from);
STUB_API int stub_trace_count(const char *text);
STUB_API void stub_trace_clear(void);
STUB_API void stub_trace_print(void);

#endif
