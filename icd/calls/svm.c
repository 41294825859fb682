/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations of SVM, of which buffers may be made: objects/svm.h. */
#include "icd/objects/svm.h"

#include "icd/config.h"
#include "icd/intercept.h"
#include "icd/layer.h"

/* Without a record a buffer could be made an import, so the program gets no such memory. */
void *CL_API_CALL layer_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
				   cl_uint alignment)
{
	void *memory = next.clSVMAlloc(context, flags, size, alignment);

	if (!memory || !config_in_place() || svm_add(context, memory, size))
		return memory;
	next.clSVMFree(context, memory);
	return NULL;
}

void CL_API_CALL layer_clSVMFree(cl_context context, void *memory)
{
	if (memory && config_in_place())
		svm_remove(context, memory);
	next.clSVMFree(context, memory);
}
