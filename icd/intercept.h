/* SPDX-License-Identifier: Apache-2.0 */
/* Every function this layer intercepts, by the file of icd/calls/ that has it. */
#ifndef ICD_INTERCEPT_H
#define ICD_INTERCEPT_H

#include "icd/layer.h"

#define INTERCEPTED(F)                              \
	/* info.c */                                \
	F(clGetPlatformIDs)                         \
	F(clGetPlatformInfo)                        \
	F(clGetDeviceInfo)                          \
	/* icd/address.c */                         \
	F(clGetExtensionFunctionAddress)            \
	F(clGetExtensionFunctionAddressForPlatform) \
	/* context.c */                             \
	F(clCreateContext)                          \
	F(clCreateContextFromType)                  \
	F(clRetainContext)                          \
	F(clReleaseContext)                         \
	/* mem_object.c */                          \
	F(clRetainMemObject)                        \
	F(clReleaseMemObject)                       \
	F(clGetMemObjectInfo)                       \
	F(clGetImageInfo)                           \
	/* sub_buffer.c image.c */                  \
	F(clCreateSubBuffer)                        \
	F(clCreateImage)                            \
	F(clCreateImageWithProperties)              \
	/* host_buffer.c host_image.c host_map.c */ \
	F(clEnqueueReadBuffer)                      \
	F(clEnqueueWriteBuffer)                     \
	F(clEnqueueReadBufferRect)                  \
	F(clEnqueueWriteBufferRect)                 \
	F(clEnqueueCopyBuffer)                      \
	F(clEnqueueCopyBufferRect)                  \
	F(clEnqueueFillBuffer)                      \
	F(clEnqueueReadImage)                       \
	F(clEnqueueWriteImage)                      \
	F(clEnqueueCopyImage)                       \
	F(clEnqueueCopyImageToBuffer)               \
	F(clEnqueueCopyBufferToImage)               \
	F(clEnqueueFillImage)                       \
	F(clEnqueueMapBuffer)                       \
	F(clEnqueueMapImage)                        \
	F(clEnqueueUnmapMemObject)                  \
	/* kernel.c */                              \
	F(clCreateKernel)                           \
	F(clCreateKernelsInProgram)                 \
	F(clCloneKernel)                            \
	F(clReleaseKernel)                          \
	F(clSetKernelArg)                           \
	F(clEnqueueNDRangeKernel)                   \
	F(clEnqueueTask)                            \
	F(clEnqueueNativeKernel)                    \
	/* kernel_pointer.c */                      \
	F(clSetKernelArgSVMPointer)                 \
	/* event.c */                               \
	F(clRetainEvent)                            \
	F(clReleaseEvent)                           \
	F(clGetEventInfo)                           \
	F(clGetEventProfilingInfo)                  \
	F(clSetEventCallback)                       \
	/* observe.c */                             \
	F(clFinish)                                 \
	F(clEnqueueMarker)                          \
	F(clEnqueueBarrier)                         \
	F(clEnqueueWaitForEvents)                   \
	F(clEnqueueMarkerWithWaitList)              \
	F(clEnqueueBarrierWithWaitList)             \
	F(clEnqueueMigrateMemObjects)               \
	F(clEnqueueAcquireGLObjects)                \
	F(clEnqueueReleaseGLObjects)                \
	F(clEnqueueAcquireEGLObjectsKHR)            \
	F(clEnqueueReleaseEGLObjectsKHR)            \
	F(clEnqueueSVMFree)                         \
	F(clEnqueueSVMMemcpy)                       \
	F(clEnqueueSVMMemFill)                      \
	F(clEnqueueSVMMap)                          \
	F(clEnqueueSVMUnmap)                        \
	F(clEnqueueSVMMigrateMem)                   \
	F(clSetCommandQueueProperty)                \
	F(clReleaseCommandQueue)                    \
	F(clSetMemObjectDestructorCallback)         \
	F(clSetProgramReleaseCallback)

/* Prototypes, of the types that the dispatch table has. */
#define DECLARE(f) __typeof__(*next.f) layer_##f;
INTERCEPTED(DECLARE)
#undef DECLARE

/* The extension's function: import_memory.c */
cl_mem CL_API_CALL layer_clImportMemoryARM(cl_context context, cl_mem_flags flags,
					   const cl_import_properties_arm *properties, void *memory,
					   size_t size, cl_int *errcode_ret);

#endif /* ICD_INTERCEPT_H */
