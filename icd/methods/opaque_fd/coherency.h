/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a device is zero copy with memory from opaque descriptors: a self-test decides, for each exporter of
 * descriptors, since the exporter decides whether the device caches the memory.  It takes about a second on a GPU and
 * loads the exporters' libraries, in climport-probe.
 */
#ifndef ICD_METHODS_OPAQUE_FD_COHERENCY_H
#define ICD_METHODS_OPAQUE_FD_COHERENCY_H

#include <stdbool.h>

#include "icd/objects/device.h"

/**
 * coherency_test - test a device with every exporter
 * @device: exporters are set
 * @method: why is set to a sentence with all results, for host memory; unknown, if one could not be tested now
 *
 * Whether an exporter is zero copy.
 */
bool coherency_test(struct device *device, struct method *method);

#endif /* ICD_METHODS_OPAQUE_FD_COHERENCY_H */
