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
	{ NULL, NULL, false },
};
