/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the stub.  Errors are cl_int, as in OpenCL. */
#ifndef TESTS_STUB_INTERNAL_H
#define TESTS_STUB_INTERNAL_H

#include "command_types.h"
#include "fork_safe.h"
#include "stub.h"

#include <CL/cl_egl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES 12
#define BASE_ALIGN 128 /* bytes; CL_DEVICE_MEM_BASE_ADDR_ALIGN as PoCL has it */
#define STUB_PAGE ((size_t)sysconf(_SC_PAGESIZE))

/* Each function's prototype and number. */
#define F(name) __typeof__(name) stub_##name;
#define N F
#define X F
#define V(name) stub_type_##name stub_##name;
cl_int CL_API_CALL clEnqueueNDCountKernelINTEL(cl_command_queue queue, cl_kernel kernel,
					       cl_uint dims, const size_t *offset,
					       const size_t *count, const size_t *local,
					       cl_uint num, const cl_event *list, cl_event *event);
cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num, cl_platform_id *out, cl_uint *num_ret);
#include "functions.h"
#undef V
#undef F

#define F(name) F_##name,
#define V F
enum function {
#include "functions.h"
	F_COUNT
};
#undef V
#undef X
#undef N
#undef F

/* object.c.  Handles are slots of one array, so the stub can check any pointer. */
struct object {
	const struct _cl_icd_dispatch *dispatch; /* first: the loaders read it */
	atomic_uint kind;
	atomic_int refs;
};

void *object_create(enum stub_kind kind);
void *object_get(const void *handle, enum stub_kind kind);

void object_retain(void *object);
bool object_release(void *object); /* returns true if the last reference was released */
void object_destroy(void *object);

/* control.c.  CALL() counts and records, and returns the fault to inject. */
#define U(x) ((uintptr_t)(x))
#define CALL(name, ...)                                          \
	call_begin(F_##name, (const uintptr_t[]){ __VA_ARGS__ }, \
		   sizeof((const uintptr_t[]){ __VA_ARGS__ }) / sizeof(uintptr_t))
cl_int call_begin(enum function f, const uintptr_t *args, size_t count);
void call_back_mem(void(CL_CALLBACK *notify)(cl_mem, void *), cl_mem mem, void *data);
void sleep_ms(long ms);

/* Writes the answer of a two-call query. */
cl_int info_put(const void *value, size_t size, size_t room, void *out, size_t *size_ret);
/* A name of the driver's, with the variable STUB_TEXT behind. */
cl_int stub_put_name(const char *name, size_t room, void *out, size_t *size_ret);

/* Ends a failing creating call: returns NULL, or the dead handle with STUB_FAILED_HANDLE. */
void *creation_failed(cl_int *errcode_ret, cl_int err);

/* platform.c */
struct platform {
	struct object base;
	unsigned index;
	struct device *device[MAX_DEVICES];
};

struct device {
	struct object base;
	struct platform *platform;
	struct device *parent; /* of a sub-device */
	unsigned index;
};

/* Whether the device bit of @option is set for the root device of @device. */
bool device_option(const struct device *device, enum stub_option option);
cl_int device_info(const struct device *device, cl_device_info name, size_t room, void *out,
		   size_t *size_ret);

/* With STUB_PRELOADED, calls the function @name of the preloaded library. */
cl_int device_call_preloaded(const struct device *device, const char *name);

/* context.c */
struct callback {
	struct callback *next;
	union {
		void(CL_CALLBACK *context)(cl_context, void *);
		void(CL_CALLBACK *mem)(cl_mem, void *);
		void(CL_CALLBACK *event)(cl_event, cl_int, void *);
	} call;
	cl_int type;
	void *data;
};

struct context {
	struct object base;
	cl_uint num_devices;
	struct device *device[MAX_DEVICES];
	cl_context_properties properties[8];
	size_t num_properties;
	struct callback *callbacks; /* last registered first */
	atomic_uint handles;	    /* the application's references */
};

void stub_context_put(struct context *context);
bool context_has(const struct context *context, const struct device *device);
bool context_option(const struct context *context, enum stub_option option);

/* mem.c, image.c */
#define ACCESS (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
#define HOST_ACCESS (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)
#define HOST_PTR (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)

struct mem {
	struct object base;
	struct context *context;
	cl_mem_object_type type;
	cl_mem_flags flags;
	size_t size;
	unsigned char *data;	 /* memory that commands work on */
	unsigned char *host_ptr; /* the application's memory; differs from data in copying modes */
	unsigned char *snapshot; /* for STUB_STALE_READS: the memory at creation */
	bool own_data;
	struct mem *parent;
	size_t origin;
	size_t element, width, height, depth, row_pitch, slice_pitch;
	size_t stride; /* of the rows that kernels see */
	cl_image_format format;
	cl_mem_properties properties[8];
	size_t num_properties;
	bool opaque; /* made from an opaque descriptor, which it owns */
	int opaque_fd;
	bool khr;	 /* made from a dma-buf: @data is a mapping, or memory of its own */
	int khr_fd;	 /* owned; -1: closed */
	bool khr_mapped; /* unmapped with the object */
	unsigned char *khr_other; /* another memory, for kernels without an acquire; or NULL */
	atomic_int acquired;
	char mapping; /* of host_ptr: 'd'ma-buf, 's'hared, 't'mpfs, 'f'ile, 'r'ead-only, or 0 */
	bool several; /* host_ptr spans more than one mapping */
	atomic_int maps;
	struct callback *callbacks; /* last registered first */
};

struct op;

struct mem *mem_create(struct context *context, cl_mem_object_type type, cl_mem_flags flags,
		       size_t size, void *host_ptr);
void mem_back(struct mem *mem, struct context *context, cl_mem_flags flags, void *host_ptr,
	      bool copying);
void mem_put(struct mem *mem);
struct mem *opaque_create(struct context *context, cl_mem_flags flags, size_t size, int fd,
			  cl_int *err);
void opaque_destroy(struct mem *mem);

/* khr.c */
bool khr_is_asked(const cl_mem_properties *properties);
struct mem *stub_khr_create(struct context *context, cl_mem_flags flags, size_t size, int fd,
			    cl_int *err);
void khr_destroy(struct mem *mem);
unsigned char *khr_data(struct mem *mem);
void khr_run(struct mem *mem, bool acquires);
void khr_note_use(struct mem *mem); /* by a command that is no kernel */
void *stub_khr_function(const char *name);
cl_int mem_check_flags(cl_mem_flags flags, const void *host_ptr);
cl_int mem_keep_properties(struct mem *mem, const cl_mem_properties *properties);
struct mem *mem_root(struct mem *mem);
bool mem_is_image(const struct mem *mem);
cl_mem mem_buffer(cl_context handle, cl_mem_flags flags, size_t size, void *host_ptr,
		  const cl_mem_properties *properties, cl_int *errcode_ret);

/* event.c: one lock and one condition for all queues and events. */
struct event {
	struct object base;
	struct context *context;
	struct queue *queue; /* NULL for a user event */
	cl_command_type type;
	cl_int status;
	cl_ulong time[4]; /* queued, submitted, started, ended */
	struct callback *callbacks;
};

extern pthread_mutex_t sched_lock;
extern pthread_cond_t sched_changed;

struct event *event_create(struct context *context, struct queue *queue, cl_command_type type);
void stub_event_put(struct event *event);

/*
 * Sets the status and wakes waiters.  The caller holds the lock, and calls callbacks_run() after
 * unlocking.
 */
struct callback *event_change(struct event *event, cl_int status);
void callbacks_run(struct event *event, struct callback *due);
cl_int event_wait(struct event *event);

/* event_change() and callbacks_run(), for callers without the lock. */
void event_set_status(struct event *event, cl_int status);
cl_int wait_list_check(struct context *context, cl_uint num, const cl_event *list);

/* op.c: the effects of commands on memory. */
struct box {
	unsigned char *at;
	size_t row_pitch, slice_pitch;
};

struct op {
	enum {
		OP_NOTHING,
		OP_COPY,
		OP_FILL,
		OP_LAUNCH,
		OP_SYNC_OUT,
		OP_SYNC_IN,
		OP_LIST,
		OP_ACQUIRE,
		OP_RELEASE
	} kind;
	cl_command_type type;
	bool barrier;	    /* later commands wait for the barrier */
	bool waits_all;	    /* the command waits for all earlier commands */
	struct mem *mem[2]; /* held until the command has run */
	struct box src, dst;
	size_t bytes, rows, slices; /* of a copy or fill */
	unsigned char pattern[128];
	size_t pattern_size;
	struct launch *launch;
	struct command_buffer *list;
};

void op_hold(struct op *op);
void op_drop(struct op *op);
cl_int op_run(struct op *op, struct device *device);

/* queue.c */
struct queue {
	struct object base;
	struct context *context;
	struct device *device;
	cl_command_queue_properties properties;
	pthread_t thread;
	/* The commands in the order of enqueueing.  sched_lock guards first and all members below. */
	struct command *first;
	unsigned long enqueued, flushed;
	bool stop, detached;
};

/* The end of every clEnqueue function's arguments. */
#define WAIT cl_uint num, const cl_event *list, cl_event *event
#define UWAIT U(num), U(list), U(event)

void queue_put(struct queue *queue);

/*
 * Waits until what has ended is dropped, for a second at most: a callback of an event may wait for
 * the caller.
 */
void queues_settle(void);
void queues_forget(void); /* in a child of fork() */

/* Hands @op to the queue.  The queue takes over the op's memory objects, also on failure. */
cl_int queue_submit(cl_command_queue handle, struct op *op, cl_uint num, const cl_event *list,
		    cl_event *event, bool blocking);
void queue_flush_event(struct event *event);

/*
 * Returns NULL and an error unless @handle is a queue and each given @mem is an object of the
 * queue's context.
 */
struct queue *queue_check(cl_command_queue handle, cl_mem a, cl_mem b, cl_int *err);

/* copy.c: a command's arguments as an op, for enqueueing and for recording. */
cl_int copy_buffer_op(struct op *op, cl_mem src, cl_mem dst, size_t src_offset, size_t dst_offset,
		      size_t size);
cl_int copy_rect_op(struct op *op, cl_mem src, cl_mem dst, const size_t *src_origin,
		    const size_t *dst_origin, const size_t *region, const size_t *pitch);
cl_int copy_image_op(struct op *op, cl_mem src, cl_mem dst, const size_t *src_origin,
		     const size_t *dst_origin, const size_t *region);
cl_int copy_image_buffer_op(struct op *op, cl_mem image, cl_mem buffer, const size_t *origin,
			    const size_t *region, size_t offset, bool to_buffer);
cl_int fill_buffer_op(struct op *op, cl_mem buffer, const void *pattern, size_t pattern_size,
		      size_t offset, size_t size);
cl_int fill_image_op(struct op *op, cl_mem image, const void *color, const size_t *origin,
		     const size_t *region);
cl_int box_of_buffer(struct box *box, unsigned char *memory, size_t size, const size_t *origin,
		     const size_t *region, size_t row_pitch, size_t slice_pitch);
cl_int box_of_image(struct box *box, const struct mem *mem, const size_t *origin,
		    const size_t *region);

/* program.c, kernel.c, builtin.c */
enum arg_kind { ARG_VALUE, ARG_MEM, ARG_LOCAL, ARG_SAMPLER };

struct signature {
	char name[64];
	unsigned num_args;
	struct {
		enum arg_kind kind;
		size_t size; /* of a value */
	} arg[16];
};

struct program {
	struct object base;
	struct context *context;
	char *source;
	bool built;
	unsigned num_kernels;
	struct signature *kernel;
};

void program_put(struct program *program);
unsigned source_parse(const char *source, struct signature *out, unsigned room);

struct arg {
	bool set;
	struct mem *mem;
	unsigned char *svm; /* instead of @mem */
	unsigned char value[128];
	size_t size;
	unsigned char *data; /* while running: the memory of @mem */
};

typedef void kernel_fn(const struct arg *arg, const size_t *id, const size_t *global);
kernel_fn *builtin_find(const char *name);

struct launch {
	char name[64];
	kernel_fn *run;
	bool is_first; /* of the kernel object */
	unsigned num_args;
	struct arg arg[16];
	size_t offset[3], global[3];
	/* A native kernel: its arguments, and the offsets of the objects' addresses in the arguments. */
	void(CL_CALLBACK *native)(void *);
	unsigned char *native_args;
	size_t native_at[16];
};

struct launch *launch_create(cl_kernel kernel, cl_uint dims, const size_t *offset,
			     const size_t *global, cl_int *err);
struct launch *launch_retain_copy(const struct launch *launch);
void launch_destroy(struct launch *launch);
cl_int launch_run(struct launch *launch, struct device *device);

/* command_buffer.c */
cl_int command_buffer_run(struct command_buffer *list, struct device *device);
void stub_command_buffer_put(struct command_buffer *list);
cl_int command_buffer_update(cl_command_buffer_khr handle, cl_mutable_command_khr command,
			     cl_uint num_args, const cl_mutable_dispatch_arg_khr *args);

/* command_forms.c: the function @name with the parameters that an option asks for, or NULL. */
void *command_form(const char *name);

#endif
