/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of OpenCL.  The library looks for the loader, and is not linked to the loader: the layer,
 * which the loader loads, links to the library as well.
 */
#ifndef IMPORT_API_LOADER_H
#define IMPORT_API_LOADER_H

#include <CL/climport.h>

/* NULL, logged: no loader, or an old one. */
#define LOADER(name) ((__typeof__(&(name)))loader_symbol(#name))
void *loader_symbol(const char *name);

/* A platform's function beyond the loader's; NULL: there is no such function. */
void *loader_function_of(cl_platform_id platform, const char *name);

/* The layer's function, which serves all platforms; NULL: the layer is not loaded. */
void *loader_function_of_layer(const char *name);

/* The devices of a context, at least one.  @devices: the caller's to free, NULL on errors. */
cl_int loader_context_devices(cl_context context, cl_device_id **devices, size_t *count);

cl_int loader_platform_of(cl_device_id device, cl_platform_id *platform);

#endif
