/* SPDX-License-Identifier: Apache-2.0 */
/* The only place where an errno becomes an OpenCL error. */
#ifndef ICD_ERROR_H
#define ICD_ERROR_H

#include "icd/cl_compat.h"

/* @error: 0 or a negative errno of import/. */
cl_int error_to_cl(int error);

/* Logs that the driver's @function failed with @err, or made nothing. */
void error_of_driver(const char *function, cl_int err);

/* What the driver's @function made for the layer's own use: the handle, or NULL and an error, logged. */
void *error_created_or_null(const char *function, void *handle, cl_int *err);

#endif /* ICD_ERROR_H */
