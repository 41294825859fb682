/* SPDX-License-Identifier: Apache-2.0 */
#include "untested.h"

#include <stddef.h>

#define DUTY "a duty of the application"
#define ADVICE "advice to the application"
#define ANDROID "needs an AHardwareBuffer, and the suite has no port to Android"
#define OUTSIDE "needs a device outside of the coherency domain of CPU and GPU"

const struct untested untested[] = {
	{ "R6-03 Requires OpenCL version 1.0 or later.", "there is no earlier version", false },
	{ "R6-28 For specific behaviour see documentation for those memory types.",
	  "points to another section", false },
	{ "R6-34 It is the application's responsibility to ensure visibility in memory of "
	  "changes done by devices which aren't in the same coherency domain as the GPU and CPU "
	  "before using that memory from an OpenCL command.",
	  DUTY, false },
	{ "R6-38 dma_buf allocations are page-aligned and their size is a whole number of "
	  "pages.",
	  "says what the kernel's exporters do", false },
	{ "R6-39 If an application only requires communication between the host CPU and the "
	  "GPU, it should favour using host imports as described further.",
	  ADVICE, false },
	{ "R6-40 See also, the code example below.", "points to another section", false },
	{ "R6-43 This may cause larger physical allocations than the application typically "
	  "provokes if memory is sparsely used.",
	  "permits, and requires nothing", false },
	{ "R6-45 It is the application's responsibility to align for the datatype being "
	  "accessed.",
	  DUTY, false },
	{ "R6-51 Importing host memory that is otherwise being used by a device outside of the "
	  "CPU/GPU coherency domain isn't guaranteed to work and the GPU caches may contain "
	  "stale data.",
	  OUTSIDE, true },
	{ "R6-52 Importing dma_buf pages through a CPU mapping is undefined.", "undefined", false },
	{ "R6-54 This method is recommended to be used when interoperating with an existing "
	  "host library which performs its own allocation and cannot be passed handles to "
	  "mapped OpenCL buffers.",
	  ADVICE, false },
	{ "R6-56 In order to guarantee data consistency, applications must ensure that neither "
	  "the host nor any device attempt to perform simultaneous read and write operations on "
	  "any part of the memory backing an imported buffer or sub-buffers created therefrom, "
	  "even if these accesses do not overlap.",
	  DUTY, false },
	{ "R6-57 For example, this implies that it is not possible to write part of the memory "
	  "backing an imported buffer on the host while reading a sub-buffer created from that "
	  "buffer on a device, even if the memory written by the host is not visible through "
	  "the sub-buffer.",
	  DUTY, false },
	{ "R6-58 This extension also provides an alternative to image import via EGL.",
	  "says what the extension is good for", false },
	{ "R12-01 Protected memory: a zone of memory that is protected using TrustZone Media "
	  "Protection.",
	  "defines a word", false },
	{ "R12-04 Valid <properties> are: CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM",
	  ANDROID, true },
	{ "R12-05 Valid <properties> are: CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM",
	  ANDROID, true },
	{ "R12-06 Valid values for CL_IMPORT_TYPE_ARM are: "
	  "CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM",
	  ANDROID, true },
	{ "R12-14 Valid values for CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM and "
	  "CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM are integers in the range [0; "
	  "num_{planes,layers}).",
	  ANDROID, true },
	{ "R12-19 CL_INVALID_VALUE if an out-of-range plane or layer index is passed via "
	  "CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM or "
	  "CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM.",
	  ANDROID, true },
	{ "R12-24 The application is still responsible for ensuring that changes to the memory "
	  "done outside of the coherency domain in which the host CPU and the OpenCL device "
	  "reside are made visibible to that coherency domain before using that memory from an "
	  "OpenCL command.",
	  DUTY, false },
	{ "R12-29 This allows to directly import a AHardwareBuffer.", ANDROID, true },
	{ "R12-30 This will acquire a reference on the AHardwareBuffer object that will not be "
	  "released until the cl_mem is destroyed.",
	  ANDROID, true },
	{ "R12-31 In version 1.0.0: Multiplanar buffers are only supported when backed by a "
	  "single dma_buf.",
	  ANDROID, true },
	{ "R12-32 In version 1.1.0: It is possible to select the specific plane or layer to "
	  "import via CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM and/or "
	  "CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM.",
	  ANDROID, true },
	{ "R12-33 The imported memory will start at the first pixel for the imported "
	  "plane/layer.",
	  ANDROID, true },
	{ "R12-34 <size> may be set to CL_IMPORT_MEMORY_WHOLE_ALLOCATION_ARM to require that "
	  "the memory object have the same size as the imported AHardwareBuffer.",
	  ANDROID, true },
	{ "K-11 The returned list may be empty.", "permits, and requires nothing", false },
	{ "K-12 External memory handle types not in "
	  "CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR may have any "
	  "memory layout.",
	  "permits, and requires nothing", false },
	{ "K-13 The layout interpretation of images imported with these handle types is "
	  "implementation defined.",
	  "implementation-defined", false },
	{ "K-17 The properties used to create a buffer from an external memory handle are "
	  "described for the corresponding extensions.",
	  "points to another section", false },
	{ "K-19 The properties used to create an image from an external memory handle are "
	  "described for the corresponding extensions.",
	  "points to another section", false },
	{ "K-21 When images are created from an external memory handle, implementations may "
	  "acquire information about image attributes such as format and layout at the time of "
	  "creation.",
	  "permits, and requires nothing", false },
	{ "K-44 The image_slice_pitch must be zero if host_ptr is NULL and the image is not an "
	  "image created from an external memory handle",
	  "a 2D image has no slices, and other images need not be importable", false },
	{ "K-45 If image_slice_pitch is zero and the image is created from an external memory "
	  "handle, then the image slice pitch is implementation-defined.",
	  "implementation-defined", false },
	{ "K-51 If event_wait_list is not NULL, the list of events pointed to by event_wait_list "
	  "must be valid and num_events_in_wait_list must be greater than 0.",
	  DUTY, false },
	{ "K-53 The context associated with events in event_wait_list and that of command_queue "
	  "must be the same.",
	  DUTY, false },
	{ "K-56 Applications must acquire the memory objects that are created using external "
	  "handles before they can be used by any OpenCL commands queued to a command-queue.",
	  DUTY, false },
	{ "K-57 Behavior is undefined if a memory object created from an external memory handle is "
	  "used by an OpenCL command queued to a command-queue without being acquired.",
	  "undefined", false },
	{ "K-59 Applications must release memory objects that were acquired using "
	  "clEnqueueReleaseExternalMemObjectsKHR before using any external memory handles that "
	  "were specified when the memory objects were created or accessing the external memory "
	  "that these handles represent outside of OpenCL, otherwise behavior is undefined.",
	  DUTY, false },
	{ "K-76 CL_OUT_OF_RESOURCES if there is a failure to allocate resources required by the "
	  "OpenCL implementation on the device.",
	  "the suite cannot take a device's resources away", false },
	{ "K-77 CL_OUT_OF_HOST_MEMORY if there is a failure to allocate resources required by the "
	  "OpenCL implementation on the host.",
	  "the suite cannot take the driver's memory away", false },
	{ "K-84 Any operations external to OpenCL on the dma_buf while it is acquired may result "
	  "in undefined behavior.",
	  "undefined", false },
	{ "K-87 The application must not perform any operations on the file descriptor after a "
	  "successful import.",
	  DUTY, false },
	{ NULL, NULL, false },
};
