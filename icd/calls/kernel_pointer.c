/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments that are set by address: the kernel no longer has a dma-buf at the index.
 *
 * An application finds a function of an extension by address alone.  The layer's function calls the
 * function of the first driver that was asked.  A function of a second driver is handed out
 * unchanged: the kernels of this driver may be bracketed for a dma-buf that the kernels do not use
 * any more, which does no harm.
 */
#include "icd/calls/kernel_pointer.h"

#include <string.h>

#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/objects/kernel_args.h"
#include "util/publish.h"

cl_int CL_API_CALL layer_clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index,
						  const void *value)
{
	cl_int err = next.clSetKernelArgSVMPointer(kernel, index, value);

	if (!err)
		kernel_args_unset(kernel, index);
	return err;
}

#define SETTER(function, type)                                                          \
	typedef cl_int(CL_API_CALL *function##_fn)(cl_kernel, cl_uint, type);           \
	static _Atomic(void *) function##_driver;                                       \
	static cl_int CL_API_CALL function(cl_kernel kernel, cl_uint index, type value) \
	{                                                                               \
		function##_fn driver = (function##_fn)atomic_load(&function##_driver);  \
		cl_int err = driver(kernel, index, value);                              \
                                                                                        \
		if (!err)                                                               \
			kernel_args_unset(kernel, index);                               \
		return err;                                                             \
	}

SETTER(set_svm_pointer_arm, const void *)
SETTER(set_mem_pointer_intel, const void *)
SETTER(set_device_pointer_ext, cl_ulong)

static const struct setter {
	const char *name;
	void *ours;
	_Atomic(void *) *driver;
} setters[] = {
	{ "clSetKernelArgSVMPointerARM", (void *)set_svm_pointer_arm, &set_svm_pointer_arm_driver },
	{ "clSetKernelArgMemPointerINTEL", (void *)set_mem_pointer_intel,
	  &set_mem_pointer_intel_driver },
	{ "clSetKernelArgDevicePointerEXT", (void *)set_device_pointer_ext,
	  &set_device_pointer_ext_driver },
};

void *kernel_pointer_function(const char *name, void *function)
{
	for (size_t i = 0; i < sizeof(setters) / sizeof(setters[0]); i++) {
		if (strcmp(setters[i].name, name))
			continue;
		if (publish_first(setters[i].driver, function) == function)
			return setters[i].ours;
	}
	return NULL;
}
