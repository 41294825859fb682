/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of one GPU, for all peers: the GPU's driver and BAR. */
#include "diag_report.h"

#include <string.h>

#include "nvml.h"

static void report_bar(const struct machine *m, const struct pci_device *gpu, struct reasons *stops)
{
	const char *advice = "Turn on Resizable BAR and Above 4G Decoding in the firmware.";
	int bar = 0;
	unsigned long long size = pci_bar_size(gpu, &bar), memory = pci_memory_size(gpu, bar);
	char have[32], want[32];

	size_text(size, have, sizeof(have));
	size_text(memory, want, sizeof(want));
	if (!size) {
		diag_say(m, "stop", "The GPU has no BAR with an address for its memory. %s",
			 advice);
		add_reason(stops, "the GPU's memory has no BAR");
	} else if (memory > size) {
		diag_say(
			m, "note",
			"The BAR is small: devices reach %s at a time, and all memory needs %s. %s",
			have, want, advice);
	} else if (memory) {
		diag_say(m, "ok", "The BAR is %s, which is all of the GPU's memory.", have);
	} else if (size <= 256 * MIB) {
		diag_say(m, "note", "The BAR is %s, and most GPUs have more memory. %s", have,
			 advice);
	} else {
		diag_say(m, "ok", "The BAR is %s; the size of the GPU's memory is unknown.", have);
	}
}

static int shares_memory(const char *driver)
{
	return !strcmp(driver, "amdgpu") || !strcmp(driver, "xe") || !strcmp(driver, "habanalabs");
}

static void report_driver(const struct machine *m, const struct pci_device *gpu,
			  struct reasons *stops)
{
	const char *driver = *gpu->driver ? gpu->driver : "none";

	if (gpu->vendor == PCI_NVIDIA && read_exists(m->root, "sys/module/nvidia") &&
	    strcmp(driver, "nvidia")) {
		diag_say(m, "stop", "The GPU's driver is %s. Bind the GPU to nvidia.", driver);
		add_reason(stops, "the GPU's driver is not nvidia");
	}
	if (gpu->vendor == PCI_NVIDIA)
		return;
	if (!shares_memory(driver)) {
		diag_say(m, "stop",
			 "The GPU's driver is %s. Besides NVIDIA's driver only amdgpu, xe and "
			 "habanalabs let other devices reach the memory.",
			 driver);
		add_reason(stops, "the GPU's driver does not share GPU memory");
	} else if (m->p2pdma == NO) {
		add_reason(stops, "the kernel is built without PCI_P2PDMA");
	}
}

/* The driver answers NVML alone, and NVML asks through the device node. */
static void report_bar_use(const struct machine *m, const struct pci_device *gpu)
{
	const char *why = "there is no /dev/nvidiactl, which nvidia-modprobe makes";
	char total[32], used[32], unused[32];
	struct nvml_bar bar;

	if (read_exists(m->root, "dev/nvidiactl"))
		why = nvml_read_bar(gpu->address, &bar);
	if (why) {
		diag_say(m, "note", "The used part of the BAR is unknown: %s.", why);
		return;
	}
	diag_say(m, "ok", "Of the BAR's %s the driver uses %s, and %s are free.",
		 size_text(bar.total, total, sizeof(total)),
		 size_text(bar.used, used, sizeof(used)),
		 size_text(bar.free, unused, sizeof(unused)));
}

void report_gpu_alone(const struct machine *m, const struct pci_device *gpu, struct reasons *stops)
{
	report_driver(m, gpu, stops);
	report_bar(m, gpu, stops);
	if (gpu->vendor == PCI_NVIDIA && read_exists(m->root, "sys/module/nvidia"))
		report_bar_use(m, gpu);
}
