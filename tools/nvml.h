/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVML, NVIDIA's management library, says of a GPU.  It is looked for when it is asked, by the
 * name that the driver installs it under: libnvidia-ml.so.1.
 */
#ifndef TOOLS_NVML_H
#define TOOLS_NVML_H

/* BAR 1, bytes. */
struct nvml_bar {
	unsigned long long total, free, used; /* as NVML's own */
};

/* @address: of a PCI device.  NULL, or why there is no answer, until the next call. */
const char *nvml_read_bar(const char *address, struct nvml_bar *bar);

#endif
