/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a GPU: its driver and BAR; and of a device that would reach the GPU's memory. */
#include "diag_report.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "import/nvidia/rm/rm_refusal.h"

static void report_bar(struct machine *m, const struct pci_device *gpu, struct reasons *stops)
{
	const char *advice = "Turn on Resizable BAR and Above 4G Decoding in the firmware.";
	const size_t size = pci_bar_size(gpu);
	char have[32];

	size_format(have, size);
	if (!size) {
		diag_say(m, STOP, "The GPU has no BAR with an address for its memory. %s", advice);
		add_reason(stops, "the GPU's memory has no BAR");
	} else if (size <= 256 * MIB) {
		diag_say(m, NOTE, "The BAR is %s, and most GPUs have more memory. %s", have,
			 advice);
	} else {
		diag_say(m, OK, "The BAR is %s.", have);
	}
}

static int shares_memory(const char *driver)
{
	return !strcmp(driver, "amdgpu") || !strcmp(driver, "xe") || !strcmp(driver, "habanalabs");
}

static void report_driver(struct machine *m, const struct pci_device *gpu, struct reasons *stops)
{
	const char *driver = *gpu->driver ? gpu->driver : "none";

	if (gpu->vendor == PCI_NVIDIA && read_exists(m->root, "sys/module/nvidia") &&
	    strcmp(driver, "nvidia")) {
		diag_say(m, STOP, "The GPU's driver is %s. Bind the GPU to nvidia.", driver);
		add_reason(stops, "the GPU's driver is not nvidia");
	}
	if (gpu->vendor == PCI_NVIDIA)
		return;
	if (!shares_memory(driver)) {
		diag_say(m, STOP,
			 "The GPU's driver is %s. Besides NVIDIA's driver only amdgpu, xe and "
			 "habanalabs let other devices reach the memory.",
			 driver);
		add_reason(stops, "the GPU's driver does not share GPU memory");
	} else if (m->p2pdma == NO) {
		add_reason(stops, "the kernel is built without PCI_P2PDMA");
	}
}

void report_gpu_alone(struct machine *m, const struct pci_device *gpu, struct reasons *stops)
{
	report_driver(m, gpu, stops);
	report_bar(m, gpu, stops);
}

/*
 * Like pci_p2pdma_distance(): from the device up, the common bridge once.  Adds the addresses to
 * @found.  Returns NO, YES or UNKNOWN.
 */
static enum answer redirects_up(const char *from, size_t end, struct reasons *found)
{
	enum answer answer = NO, here;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", from);
	for (; strlen(path) >= end && pci_is_device(path); *strrchr(path, '/') = '\0') {
		here = pci_redirects(path);
		if (here == YES)
			add_reason(found, strrchr(path, '/') + 1);
		if (here == YES || (here == UNKNOWN && answer == NO))
			answer = here;
	}
	return answer;
}

struct pair {
	const struct pci_device *gpu, *peer;
	size_t common; /* bytes that both paths begin with */
	struct reasons stops, doubts;
};

static void report_acs(struct machine *m, struct pair *p)
{
	struct reasons found = { "" };
	enum answer a = redirects_up(p->gpu->path, p->common, &found);
	enum answer b = redirects_up(p->peer->path, p->common + 1, &found);

	if (a == YES || b == YES) {
		diag_say(m, NOTE,
			 "Access Control Services send the transactions up to the root complex, "
			 "in: %s. Boot with pci=disable_acs_redir= and these addresses, or turn "
			 "ACS off in the firmware.",
			 found.text);
		add_reason(&p->doubts, "ACS sends the DMA through the root complex");
	} else if (a == UNKNOWN || b == UNKNOWN) {
		diag_say(m, NOTE,
			 "Only root can read whether ACS redirects. Run climport as root.");
		add_reason(&p->doubts, "ACS is unknown");
	} else {
		diag_say(m, OK, "No bridge between the two redirects (ACS).");
	}
}

static void report_topology(struct machine *m, struct pair *p)
{
	char bridge[PATH_MAX];
	const char *name;

	snprintf(bridge, sizeof(bridge), "%.*s", (int)p->common, p->gpu->path);
	name = strrchr(bridge, '/') + 1;
	if (pci_is_device(bridge)) {
		diag_say(m, OK, "Both are below the bridge %s.", name);
		report_acs(m, p);
	} else {
		diag_say(m, NOTE,
			 "No bridge is common to both%s: the path leads through the root complex, "
			 "and not every CPU forwards the DMA. The kernel has a list of CPUs that "
			 "do, which cannot be read. Put both below one PCIe switch.",
			 strncmp(name, "pci", 3) ? ", nor the host bridge" : "");
		add_reason(&p->doubts, "the path leads through the root complex");
	}
	if (p->gpu->node >= 0 && p->peer->node >= 0 && p->gpu->node != p->peer->node)
		diag_say(m, NOTE,
			 "GPU and device are on different NUMA nodes, %d and %d, which is slow. "
			 "Use slots of one socket.",
			 p->gpu->node, p->peer->node);
}

static void report_iommu(struct machine *m, struct pair *p)
{
	char type[32];

	diag_read_line(p->peer->path, "iommu_group/type", type, sizeof(type));
	if (!strncmp(type, "DMA", 3)) {
		diag_say(
			m, NOTE,
			"An IOMMU translates the device's DMA (%s), so all DMA goes up to the root "
			"complex, and dma-bufs of NVIDIA's own driver fail. Boot with iommu=pt.",
			type);
		add_reason(&p->doubts, "an IOMMU translates the DMA");
	} else if (!*type) {
		diag_say(m, OK, "No IOMMU translates the device's DMA.");
	} else if (!strcmp(type, "identity")) {
		diag_say(m, OK, "The IOMMU passes the device's DMA through (identity).");
	} else {
		diag_say(m, STOP,
			 "The device's IOMMU group is %s: another program has the device, or no "
			 "driver. Bind the device to its driver.",
			 type);
		add_reason(&p->stops, "the device's IOMMU group is not its driver's");
	}
}

int report_pair(struct machine *m, const struct pci_device *gpu, const struct pci_device *peer,
		const struct reasons *gpu_stops)
{
	struct pair p = { .gpu = gpu, .peer = peer, .stops = *gpu_stops };

	p.common = pci_common_length(gpu->path, peer->path);
	if (!*peer->driver) {
		diag_say(m, STOP, "The device has no driver to import a dma-buf. Load the driver.");
		add_reason(&p.stops, "the device has no driver");
	}
	if (peer->vendor == PCI_NVIDIA && pci_is_gpu(peer))
		diag_say(m, NOTE,
			 "climport imports no dma-buf of other devices' memory on a GPU of "
			 "NVIDIA's: " RM_REFUSAL ".");
	report_topology(m, &p);
	report_iommu(m, &p);
	if (m->p2pdma == UNKNOWN && gpu->vendor != PCI_NVIDIA)
		add_reason(&p.doubts, "the kernel's configuration is unknown");
	if (*p.stops.text)
		diag_judge(m, DIAG_CANNOT, &p.stops);
	else
		diag_judge(m, *p.doubts.text ? DIAG_MAY : DIAG_CAN, &p.doubts);
	return *p.stops.text ? 1 : 0;
}
