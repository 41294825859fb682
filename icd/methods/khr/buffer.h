/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver buffers from dma-bufs (cl_khr_external_memory with CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR).
 *
 * The specification gives a descriptor to the driver, and clImportMemoryARM leaves a descriptor with
 * the application: each buffer gets a duplicate.  A duplicate is not below 3: Intel's driver takes
 * descriptor 0 for none.
 */
#ifndef ICD_METHODS_KHR_BUFFER_H
#define ICD_METHODS_KHR_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"

/**
 * khr_buffer - a buffer over the first @size bytes of a dma-buf
 * @flags: flags of host pointers are left out, as the specification demands
 * @fd: stays the caller's
 *
 * Returns NULL, and @err is set and logged, if the driver makes no buffer.
 */
cl_mem khr_buffer(cl_context context, cl_mem_flags flags, int fd, size_t size, cl_int *err);

/* The commands around each use: struct method_ops. */
cl_int khr_enqueue_acquire(cl_command_queue queue, cl_uint count, const cl_mem *imports,
			   cl_uint num_wait, const cl_event *wait, cl_event *event);
cl_int khr_enqueue_release(cl_command_queue queue, cl_uint count, const cl_mem *imports,
			   cl_uint num_wait, const cl_event *wait, cl_event *event);

/* Whether the driver of a platform has all functions of the method. */
bool khr_has_functions(cl_platform_id platform);

#endif /* ICD_METHODS_KHR_BUFFER_H */
