/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of kept records: the driver and machine of a platform.  The driver's library is
 * part of the key, so a new build of an old version is tested again.  The kernel's version, the
 * environment of drivers and the layers below are part of each key, as each of these may decide
 * whether a driver copies.
 */
#ifndef ICD_PROBE_IDENTITY_H
#define ICD_PROBE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"

/* The file of the driver's library, "" if it is unknown or has a relative name: place_note_loader(). */
void identity_driver(cl_platform_id platform, char *path, size_t size);

/*
 * The key of a platform.  Without the driver's library the key has the other parts: it tells the platforms of the
 * process apart, and no record is kept.  False: the platform is unknown, or there is no memory.
 */
bool identity_platform(cl_platform_id platform, unsigned long long *key, bool *has_library);

/*
 * A probe process inherits the limits and filters of system calls, and may die because of them.  So a
 * death holds for processes with equal limits and as many filters: these as a number.
 */
unsigned long long identity_limits(void);

#endif /* ICD_PROBE_IDENTITY_H */
