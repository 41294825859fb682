/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of the result cache: the driver, device and machine of a result.  The driver's library is
 * part of the key, so a new build of an old version is tested again.  The kernel's version, the
 * environment of drivers and the layers below are part of each key, as each of these may decide
 * whether a driver copies.
 */
#ifndef ICD_PROBE_IDENTITY_H
#define ICD_PROBE_IDENTITY_H

#include <stdbool.h>

#include "icd/cl_compat.h"

/*
 * The environment's part of keys: a hash of the environment with which the drivers were started
 * (start.h).  A probe process is told the part of the process that asks: a loader may run a driver, which
 * changes the environment, before the loader starts the layer.
 */
unsigned long long identity_environment(void);
void identity_set_environment(unsigned long long hash);

/* Whether the process has more rights than the user: then the environment is not believed. */
bool identity_is_privileged(void);

/*
 * A key for all devices of a platform: text without newlines, which the caller frees.  If the library is unknown, the key has the other parts and
 * @lasting is false: the key tells the platforms of the process apart, and no result is kept.
 * NULL: the platform is unknown.
 */
char *identity_platform(cl_platform_id platform, bool *lasting);

#define IDENTITY_LIMITS_SIZE 192 /* bytes */

/*
 * A probe process inherits the limits and filters of system calls, and may fail because of them.  So a
 * failure holds for processes with equal limits and as many filters: these as words.
 */
void identity_limits(char text[IDENTITY_LIMITS_SIZE]);

#endif /* ICD_PROBE_IDENTITY_H */
