/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL's functions, from a library that the program opens while it runs.  The suite is not linked to
 * a library: the program starts without OpenCL, and a library that cannot be used has a sentence.
 *
 * The names of OpenCL's functions are macros.  Each call is noted before and after, so that the report
 * of a failed test names the call, and the report of a dead process names the call in which it died.
 * A function that the library lacks skips the test.
 */
#ifndef TESTS_SPEC_OPENCL_H
#define TESTS_SPEC_OPENCL_H

#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum opencl_call {
	OPENCL_NO_CALL,
	OPENCL_clImportMemoryARM,
	OPENCL_clEnqueueAcquireExternalMemObjectsKHR,
	OPENCL_clEnqueueReleaseExternalMemObjectsKHR,
	OPENCL_EXTENSIONS = OPENCL_clEnqueueReleaseExternalMemObjectsKHR,
#define STATUS(name) OPENCL_##name,
#define HANDLE STATUS
#include "opencl_functions.h"
#undef STATUS
#undef HANDLE
	OPENCL_CALLS
};

/* NULL for functions that the library lacks. */
struct opencl {
#define STATUS(name) __typeof__(name)(*(name));
#define HANDLE STATUS
#include "opencl_functions.h"
#undef STATUS
#undef HANDLE
};
extern struct opencl opencl;

/*
 * The last call, by any thread.  The runner puts the note into memory that the runner's process and the
 * process of the test share.
 */
struct opencl_note {
	atomic_uint call; /* enum opencl_call */
	atomic_bool is_inside;
	atomic_int error;	   /* 1: no object, and the error is not known */
	atomic_int depth;	   /* of opencl_begin_aside() */
	atomic_bool has_effects;   /* any call but queries */
	atomic_bool has_commands;  /* an enqueue that is not aside */
	atomic_bool data_is_wrong; /* found since the last call */
};
extern struct opencl_note *opencl_note;

/*
 * Opens @library, or with NULL the system's.  False if there is no usable library; @why is then a
 * sentence.
 */
bool opencl_open(const char *library, char *why, size_t room);

/* The calls between begin and end do not set has_commands. */
void opencl_begin_aside(void);
void opencl_end_aside(void);

void opencl_reset_note(void);

/* "in clFinish", "after clFinish: CL_INVALID_COMMAND_QUEUE (-36)", or "" before the first call. */
void opencl_describe_note(const struct opencl_note *note, char *text, size_t room);

/* For the macros, and for the functions of extensions. */
void opencl_enter(enum opencl_call call, bool is_there);
cl_int opencl_leave(enum opencl_call call, cl_int error);
void *opencl_leave_with(enum opencl_call call, void *handle);

#define OPENCL_STATUS(name, ...)                           \
	(opencl_enter(OPENCL_##name, opencl.name != NULL), \
	 opencl_leave(OPENCL_##name, opencl.name(__VA_ARGS__)))
#define OPENCL_HANDLE(name, ...)                           \
	(opencl_enter(OPENCL_##name, opencl.name != NULL), \
	 opencl_leave_with(OPENCL_##name, opencl.name(__VA_ARGS__)))

/* clang-format off */
#define clGetPlatformIDs(...) OPENCL_STATUS(clGetPlatformIDs, __VA_ARGS__)
#define clGetPlatformInfo(...) OPENCL_STATUS(clGetPlatformInfo, __VA_ARGS__)
#define clGetDeviceIDs(...) OPENCL_STATUS(clGetDeviceIDs, __VA_ARGS__)
#define clGetDeviceInfo(...) OPENCL_STATUS(clGetDeviceInfo, __VA_ARGS__)
#define clCreateSubDevices(...) OPENCL_STATUS(clCreateSubDevices, __VA_ARGS__)
#define clRetainDevice(...) OPENCL_STATUS(clRetainDevice, __VA_ARGS__)
#define clReleaseDevice(...) OPENCL_STATUS(clReleaseDevice, __VA_ARGS__)
#define clRetainContext(...) OPENCL_STATUS(clRetainContext, __VA_ARGS__)
#define clReleaseContext(...) OPENCL_STATUS(clReleaseContext, __VA_ARGS__)
#define clGetContextInfo(...) OPENCL_STATUS(clGetContextInfo, __VA_ARGS__)
#define clRetainCommandQueue(...) OPENCL_STATUS(clRetainCommandQueue, __VA_ARGS__)
#define clReleaseCommandQueue(...) OPENCL_STATUS(clReleaseCommandQueue, __VA_ARGS__)
#define clGetCommandQueueInfo(...) OPENCL_STATUS(clGetCommandQueueInfo, __VA_ARGS__)
#define clRetainMemObject(...) OPENCL_STATUS(clRetainMemObject, __VA_ARGS__)
#define clReleaseMemObject(...) OPENCL_STATUS(clReleaseMemObject, __VA_ARGS__)
#define clGetSupportedImageFormats(...) OPENCL_STATUS(clGetSupportedImageFormats, __VA_ARGS__)
#define clGetMemObjectInfo(...) OPENCL_STATUS(clGetMemObjectInfo, __VA_ARGS__)
#define clGetImageInfo(...) OPENCL_STATUS(clGetImageInfo, __VA_ARGS__)
#define clSetMemObjectDestructorCallback(...) OPENCL_STATUS(clSetMemObjectDestructorCallback, __VA_ARGS__)
#define clRetainSampler(...) OPENCL_STATUS(clRetainSampler, __VA_ARGS__)
#define clReleaseSampler(...) OPENCL_STATUS(clReleaseSampler, __VA_ARGS__)
#define clGetSamplerInfo(...) OPENCL_STATUS(clGetSamplerInfo, __VA_ARGS__)
#define clRetainProgram(...) OPENCL_STATUS(clRetainProgram, __VA_ARGS__)
#define clReleaseProgram(...) OPENCL_STATUS(clReleaseProgram, __VA_ARGS__)
#define clBuildProgram(...) OPENCL_STATUS(clBuildProgram, __VA_ARGS__)
#define clGetProgramInfo(...) OPENCL_STATUS(clGetProgramInfo, __VA_ARGS__)
#define clGetProgramBuildInfo(...) OPENCL_STATUS(clGetProgramBuildInfo, __VA_ARGS__)
#define clRetainKernel(...) OPENCL_STATUS(clRetainKernel, __VA_ARGS__)
#define clReleaseKernel(...) OPENCL_STATUS(clReleaseKernel, __VA_ARGS__)
#define clSetKernelArg(...) OPENCL_STATUS(clSetKernelArg, __VA_ARGS__)
#define clGetKernelInfo(...) OPENCL_STATUS(clGetKernelInfo, __VA_ARGS__)
#define clGetKernelWorkGroupInfo(...) OPENCL_STATUS(clGetKernelWorkGroupInfo, __VA_ARGS__)
#define clWaitForEvents(...) OPENCL_STATUS(clWaitForEvents, __VA_ARGS__)
#define clGetEventInfo(...) OPENCL_STATUS(clGetEventInfo, __VA_ARGS__)
#define clRetainEvent(...) OPENCL_STATUS(clRetainEvent, __VA_ARGS__)
#define clReleaseEvent(...) OPENCL_STATUS(clReleaseEvent, __VA_ARGS__)
#define clSetUserEventStatus(...) OPENCL_STATUS(clSetUserEventStatus, __VA_ARGS__)
#define clSetEventCallback(...) OPENCL_STATUS(clSetEventCallback, __VA_ARGS__)
#define clGetEventProfilingInfo(...) OPENCL_STATUS(clGetEventProfilingInfo, __VA_ARGS__)
#define clFlush(...) OPENCL_STATUS(clFlush, __VA_ARGS__)
#define clFinish(...) OPENCL_STATUS(clFinish, __VA_ARGS__)
#define clEnqueueReadBuffer(...) OPENCL_STATUS(clEnqueueReadBuffer, __VA_ARGS__)
#define clEnqueueReadBufferRect(...) OPENCL_STATUS(clEnqueueReadBufferRect, __VA_ARGS__)
#define clEnqueueWriteBuffer(...) OPENCL_STATUS(clEnqueueWriteBuffer, __VA_ARGS__)
#define clEnqueueWriteBufferRect(...) OPENCL_STATUS(clEnqueueWriteBufferRect, __VA_ARGS__)
#define clEnqueueFillBuffer(...) OPENCL_STATUS(clEnqueueFillBuffer, __VA_ARGS__)
#define clEnqueueCopyBuffer(...) OPENCL_STATUS(clEnqueueCopyBuffer, __VA_ARGS__)
#define clEnqueueCopyBufferRect(...) OPENCL_STATUS(clEnqueueCopyBufferRect, __VA_ARGS__)
#define clEnqueueReadImage(...) OPENCL_STATUS(clEnqueueReadImage, __VA_ARGS__)
#define clEnqueueWriteImage(...) OPENCL_STATUS(clEnqueueWriteImage, __VA_ARGS__)
#define clEnqueueFillImage(...) OPENCL_STATUS(clEnqueueFillImage, __VA_ARGS__)
#define clEnqueueCopyImage(...) OPENCL_STATUS(clEnqueueCopyImage, __VA_ARGS__)
#define clEnqueueCopyImageToBuffer(...) OPENCL_STATUS(clEnqueueCopyImageToBuffer, __VA_ARGS__)
#define clEnqueueCopyBufferToImage(...) OPENCL_STATUS(clEnqueueCopyBufferToImage, __VA_ARGS__)
#define clEnqueueUnmapMemObject(...) OPENCL_STATUS(clEnqueueUnmapMemObject, __VA_ARGS__)
#define clEnqueueMigrateMemObjects(...) OPENCL_STATUS(clEnqueueMigrateMemObjects, __VA_ARGS__)
#define clEnqueueNDRangeKernel(...) OPENCL_STATUS(clEnqueueNDRangeKernel, __VA_ARGS__)
#define clEnqueueTask(...) OPENCL_STATUS(clEnqueueTask, __VA_ARGS__)
#define clEnqueueNativeKernel(...) OPENCL_STATUS(clEnqueueNativeKernel, __VA_ARGS__)
#define clEnqueueMarkerWithWaitList(...) OPENCL_STATUS(clEnqueueMarkerWithWaitList, __VA_ARGS__)
#define clEnqueueBarrierWithWaitList(...) OPENCL_STATUS(clEnqueueBarrierWithWaitList, __VA_ARGS__)
#define clEnqueueMarker(...) OPENCL_STATUS(clEnqueueMarker, __VA_ARGS__)
#define clEnqueueBarrier(...) OPENCL_STATUS(clEnqueueBarrier, __VA_ARGS__)
#define clEnqueueWaitForEvents(...) OPENCL_STATUS(clEnqueueWaitForEvents, __VA_ARGS__)
#define clCreateContext(...) OPENCL_HANDLE(clCreateContext, __VA_ARGS__)
#define clCreateContextFromType(...) OPENCL_HANDLE(clCreateContextFromType, __VA_ARGS__)
#define clCreateCommandQueue(...) OPENCL_HANDLE(clCreateCommandQueue, __VA_ARGS__)
#define clCreateCommandQueueWithProperties(...) OPENCL_HANDLE(clCreateCommandQueueWithProperties, __VA_ARGS__)
#define clCreateBuffer(...) OPENCL_HANDLE(clCreateBuffer, __VA_ARGS__)
#define clCreateBufferWithProperties(...) OPENCL_HANDLE(clCreateBufferWithProperties, __VA_ARGS__)
#define clCreateSubBuffer(...) OPENCL_HANDLE(clCreateSubBuffer, __VA_ARGS__)
#define clCreateImage(...) OPENCL_HANDLE(clCreateImage, __VA_ARGS__)
#define clCreateImageWithProperties(...) OPENCL_HANDLE(clCreateImageWithProperties, __VA_ARGS__)
#define clCreateImage2D(...) OPENCL_HANDLE(clCreateImage2D, __VA_ARGS__)
#define clCreateImage3D(...) OPENCL_HANDLE(clCreateImage3D, __VA_ARGS__)
#define clCreateSampler(...) OPENCL_HANDLE(clCreateSampler, __VA_ARGS__)
#define clCreateProgramWithSource(...) OPENCL_HANDLE(clCreateProgramWithSource, __VA_ARGS__)
#define clCreateKernel(...) OPENCL_HANDLE(clCreateKernel, __VA_ARGS__)
#define clCloneKernel(...) OPENCL_HANDLE(clCloneKernel, __VA_ARGS__)
#define clCreateUserEvent(...) OPENCL_HANDLE(clCreateUserEvent, __VA_ARGS__)
#define clEnqueueMapBuffer(...) OPENCL_HANDLE(clEnqueueMapBuffer, __VA_ARGS__)
#define clEnqueueMapImage(...) OPENCL_HANDLE(clEnqueueMapImage, __VA_ARGS__)
#define clGetExtensionFunctionAddress(...) OPENCL_HANDLE(clGetExtensionFunctionAddress, __VA_ARGS__)
#define clGetExtensionFunctionAddressForPlatform(...) OPENCL_HANDLE(clGetExtensionFunctionAddressForPlatform, __VA_ARGS__)
/* clang-format on */

#endif /* TESTS_SPEC_OPENCL_H */
