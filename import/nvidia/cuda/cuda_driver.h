/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libcuda.so.1 for import/nvidia/cuda/, in our own declarations.
 *
 * dlsym() finds each function in the named version; the numbers are the driver API's and never
 * change.  Types: a result, a device and an enum are int, a context is void *, a
 * device pointer and a size are 64 bits.
 */
#ifndef IMPORT_NVIDIA_CUDA_CUDA_DRIVER_H
#define IMPORT_NVIDIA_CUDA_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cuda_result {
	CUDA_SUCCESS = 0,
	CUDA_INVALID_VALUE = 1,
	CUDA_OUT_OF_MEMORY = 2,
	CUDA_NOT_INITIALIZED = 3,
	CUDA_DEINITIALIZED = 4,
	CUDA_NO_DEVICE = 100,
	CUDA_INVALID_DEVICE = 101,
	CUDA_INVALID_CONTEXT = 201,
	CUDA_OPERATING_SYSTEM = 304,
	CUDA_NOT_FOUND = 500,
	CUDA_CONTEXT_IS_DESTROYED = 709,
	CUDA_NOT_PERMITTED = 800,
	CUDA_NOT_SUPPORTED = 801,
};

enum cuda_pointer_attribute {
	CUDA_POINTER_CONTEXT = 1,
	CUDA_POINTER_MEMORY_TYPE = 2,
	CUDA_POINTER_SYNC_MEMOPS = 6,
	CUDA_POINTER_BUFFER_ID = 7,
	CUDA_POINTER_IS_MANAGED = 8,
	CUDA_POINTER_DEVICE_ORDINAL = 9,
	CUDA_POINTER_RANGE_START = 11, /* of VMM: the reservation, not the mapping */
	CUDA_POINTER_RANGE_SIZE = 12,
	CUDA_POINTER_MAPPING_SIZE = 18,
	CUDA_POINTER_MAPPING_BASE = 19,
};

enum cuda_memory_type { CUDA_TYPE_HOST = 1, CUDA_TYPE_DEVICE = 2 };

enum cuda_device_attribute {
	CUDA_DEVICE_COMPUTE_MAJOR = 75,
	CUDA_DEVICE_HOST_NATIVE_ATOMIC = 86,
	CUDA_DEVICE_VMM = 102,
	CUDA_DEVICE_RDMA_WITH_VMM = 110,
	CUDA_DEVICE_DMA_BUF = 124,
	CUDA_DEVICE_HOST_NUMA_ID = 134,
};

enum {
	CUDA_RANGE_DMA_BUF_FD = 1,
	CUDA_RANGE_FLAG_PCIE = 1,
	CUDA_ALLOCATION_PINNED = 1,
	CUDA_HANDLE_POSIX_FD = 1,
	CUDA_GRANULARITY_MINIMUM = 0,
	CUDA_ACCESS_READ_WRITE = 3,
};

enum cuda_location_type {
	CUDA_LOCATION_DEVICE = 1,
	CUDA_LOCATION_HOST = 2,
	CUDA_LOCATION_HOST_NUMA = 3,
	CUDA_LOCATION_HOST_NUMA_CURRENT = 4,
};

struct cuda_location {
	int type;
	int id;
};

/* CUmemAllocationProp */
struct cuda_properties {
	int type;
	int handle_types;
	struct cuda_location location;
	void *win32;
	unsigned char compression;
	unsigned char rdma_capable;
	unsigned short usage;
	unsigned char reserved[4];
};

/* CUmemAccessDesc */
struct cuda_access {
	struct cuda_location location;
	int flags;
};

struct cuda_driver {
	int (*init)(unsigned int flags);
	int (*error_name)(int result, const char **name);
	int (*device_count)(int *count);
	int (*device_get)(int *device, int ordinal);
	int (*device_attribute)(int *value, int attribute, int device);
	int (*device_uuid)(void *uuid, int device);
	int (*primary_retain)(void **context, int device);
	int (*primary_release)(int device);
	int (*context_push)(void *context);
	int (*context_pop)(void **context);
	int (*context_device)(int *device);
	int (*pointer_attributes)(unsigned int count, int *attributes, void **data,
				  uintptr_t address);
	int (*pointer_attribute)(void *data, int attribute, uintptr_t address);
	int (*set_pointer_attribute)(const void *value, int attribute, uintptr_t address);

	/* CUDA 11.7; or NULL */
	int (*range_handle)(void *handle, uintptr_t address, size_t size, int type,
			    unsigned long long flags);

	int (*granularity)(size_t *granularity, const struct cuda_properties *properties,
			   int option);
	int (*create)(uint64_t *handle, size_t size, const struct cuda_properties *properties,
		      unsigned long long flags);
	int (*release)(uint64_t handle);
	int (*reserve)(uintptr_t *address, size_t size, size_t alignment, uintptr_t hint,
		       unsigned long long flags);
	int (*unreserve)(uintptr_t address, size_t size);
	int (*map)(uintptr_t address, size_t size, size_t offset, uint64_t handle,
		   unsigned long long flags);
	int (*unmap)(uintptr_t address, size_t size);
	int (*set_access)(uintptr_t address, size_t size, const struct cuda_access *access,
			  size_t count);
	int (*retain)(uint64_t *handle, void *address);
	int (*properties)(struct cuda_properties *properties, uint64_t handle);
	int (*share)(void *shareable, uint64_t handle, int type, unsigned long long flags);

	/*
	 * Pools.  The three of streams may be NULL: stream_id is of CUDA 12.0.
	 */
	int (*total_memory)(size_t *bytes, int device);
	int (*alloc)(uintptr_t *address, size_t size);
	int (*free)(uintptr_t address);
	int (*host_alloc)(uintptr_t *address, size_t size, unsigned int flags);
	int (*host_free)(uintptr_t address);
	int (*event_create)(void **event, unsigned int flags);
	int (*event_destroy)(void *event);
	int (*event_record)(void *event, void *stream);
	int (*event_query)(void *event);
	int (*event_synchronize)(void *event);
	int (*context_synchronize)(void);
	int (*stream_id)(void *stream, unsigned long long *id);
	int (*stream_captures)(void *stream, int *status);
	int (*stream_synchronize)(void *stream);
};

/* libcuda where the process has loaded it, else NULL.  Initializes nothing. */
const struct cuda_driver *cuda_driver_loaded(void);

/* Loads and initializes libcuda.  NULL on failure, logged. */
const struct cuda_driver *cuda_driver_load(void);

/* Logs a failed call and returns its negative errno. */
int cuda_failed(const struct cuda_driver *cu, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * cuda_failed() for calls that make a descriptor: -EMFILE or -ENFILE without a descriptor left,
 * which no result of CUDA's says.
 */
int cuda_descriptor_failed(const struct cuda_driver *cu, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

int cuda_device_attribute(const struct cuda_driver *cu, int attribute, int device); /* 0: unknown */

/* A context, current on the calling thread between enter and leave. */
struct cuda_scope {
	const struct cuda_driver *cu;
	bool pushed;
	int retained; /* the device whose primary context is held, or -1 */
};

/*
 * Makes a context current: @context; if NULL, the current context if of @device; else the primary
 * context of @device, created if the program has no primary context.  @device: -1 for any current
 * context, CUDA_INVALID_CONTEXT if no context is current.  Returns a result of CUDA; leave only
 * after success.
 */
int cuda_scope_enter(struct cuda_scope *scope, const struct cuda_driver *cu, void *context,
		     int device);
void cuda_scope_leave(struct cuda_scope *scope);

#endif
