/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which driver, device and machine a result holds for: keys of the result cache.  A driver is
 * known by its library as well, so that another build of the same version asks again.  The
 * kernel's version, the environment that drivers read and the layers below this one are part of
 * each key, as each may decide what a driver copies.
 */
#ifndef ICD_SELFTEST_IDENTITY_H
#define ICD_SELFTEST_IDENTITY_H

#include <stdbool.h>

#include "icd/cl_compat.h"

/* FNV-1a, of text. */
unsigned long long identity_hash(const char *text);

/* Whether the process has rights that its user lacks: then the environment is not believed. */
bool identity_is_privileged(void);

/*
 * Text without newlines, which the caller frees.  NULL, and nothing is to be kept: the driver's
 * library cannot be told.
 */
char *identity_device(cl_device_id device, cl_platform_id platform);

/*
 * The same for all devices that a platform may have.  Where the library cannot be told, the rest
 * is given, and @lasting is false: it tells this process's platforms apart, and is not to be kept.
 * NULL: nothing is known of the platform.
 */
char *identity_platform(cl_platform_id platform, bool *lasting);

#endif /* ICD_SELFTEST_IDENTITY_H */
