/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of which the layer could make no record, for want of memory perhaps: the last few.  A
 * handle that the layer has never seen may be anything, and is not to be read.
 */
#ifndef ICD_OBJECTS_CONTEXT_MISSED_H
#define ICD_OBJECTS_CONTEXT_MISSED_H

#include <stdbool.h>

#include "icd/cl_compat.h"

void context_missed_add(cl_context handle);
void context_missed_remove(cl_context handle);
bool context_missed_has(cl_context handle);

#endif /* ICD_OBJECTS_CONTEXT_MISSED_H */
