/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of NVML, NVIDIA's management library, about a GPU.  Each call loads the library in a process
 * of its own, by the name under which the driver installs it: libnvidia-ml.so.1.
 */
#ifndef TOOLS_NVML_H
#define TOOLS_NVML_H

/* BAR 1, bytes. */
struct nvml_bar {
	unsigned long long total, free, used; /* as in NVML */
};

/* @address: of a PCI device.  NULL, or the reason for no answer, valid until the next call. */
const char *nvml_read_bar(const char *address, struct nvml_bar *bar);

#endif
