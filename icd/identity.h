/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which driver, device and machine a result holds for: keys of the result cache.  A driver is
 * known by its library's file as well, so that another build of the same version asks again.
 */
#ifndef ICD_IDENTITY_H
#define ICD_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "cl_compat.h"

/* FNV-1a, of text. */
unsigned long long identity_hash(const char *text);

/* Whether the process has rights that its user lacks: then the environment is not believed. */
bool identity_is_privileged(void);

/* False, and nothing is to be kept: the driver's library cannot be told.  No newlines. */
bool identity_device(cl_device_id device, cl_platform_id platform, char *text, size_t size);

/* The same for all devices that a platform may have: with the environment that chooses them. */
bool identity_platform(cl_platform_id platform, char *text, size_t size);

#endif /* ICD_IDENTITY_H */
