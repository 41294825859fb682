/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices that the environment selects: CLIMPORT_PLATFORM and CLIMPORT_DEVICE.  The layer gives
 * the extension to no other device.
 */
#ifndef ICD_OBJECTS_SELECTION_H
#define ICD_OBJECTS_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"

/*
 * Whether the environment selects a root device.  A variable is a number, in the order in which the
 * driver lists platforms or devices, or a part of the name, in any case of the letters.
 * @why: if the device is not selected, a sentence
 */
bool selection_has(cl_platform_id platform, cl_device_id device, char *why, size_t size);

#endif /* ICD_OBJECTS_SELECTION_H */
