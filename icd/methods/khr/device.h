/* SPDX-License-Identifier: Apache-2.0 */
/* What a device with cl_khr_external_memory takes. */
#ifndef ICD_METHODS_KHR_DEVICE_H
#define ICD_METHODS_KHR_DEVICE_H

#include "icd/methods/khr/proof.h"
#include "icd/objects/method.h"

#define KHR_EXTENSION "cl_khr_external_memory"

/* Whether a self-test is worth the time: by names, handle types and functions.  Sets method->why. */
bool khr_may_take(const struct device *device, const char *extensions, struct method *method);

/* By self-test.  @says: sentences, by enum tested, for method->why. */
bool khr_find_out(const struct device *device, enum khr_memory memory, const char *const *says,
		  struct method *method);

#endif /* ICD_METHODS_KHR_DEVICE_H */
