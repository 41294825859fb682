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
const char *identity_driver(cl_platform_id platform);

/*
 * The key of a platform.  False: the platform is unknown, or there is no memory.
 * @is_kept: whether records are kept under the key.  Not without the driver's library, where the key only tells
 *	the platforms of the process apart.  Nor if a variable that counts has changed since the layer was loaded: nobody
 *	knows with which variables the drivers of such a process work.
 */
bool identity_platform(cl_platform_id platform, unsigned long long *key, bool *is_kept);

/*
 * Whether climport-probe does not inherit a variable, which no key has: drivers set it themselves, or it preloads the
 * runtime of a sanitizer or of valgrind.  They watch a program, may not start behind
 * another, and would end a probe process for faults of the driver that the program survives.
 */
bool identity_drops(const char *variable);

/*
 * A probe process inherits the limits and filters of system calls, and may die because of them.  So a
 * death holds for processes with equal limits and as many filters: these as a number.
 */
unsigned long long identity_limits(void);

#endif /* ICD_PROBE_IDENTITY_H */
