/* SPDX-License-Identifier: Apache-2.0 */
#include "diag.h"

#include "diag_report.h"
#include "terminal.h"

static int diag_collect_gpu(struct machine *m, const struct pci_device *gpu,
			    const struct pci_device *named)
{
	struct reasons stops = { "" };
	int status = 0;
	size_t pairs = 0;

	if (gpu->vendor == PCI_NVIDIA)
		stops = m->nvidia;
	m->owner = (struct diag_owner){ gpu, NULL };
	report_gpu_alone(m, gpu, &stops);
	for (size_t i = 0; i < m->count; i++) {
		const struct pci_device *d = m->devices + i;

		if (d == gpu || (named ? d != named : !pci_is_peer(d) || pci_same_slot(d, gpu)))
			continue;
		m->owner.peer = d;
		status |= report_pair(m, gpu, d, &stops);
		pairs++;
	}
	if (!pairs)
		diag_judge(m, DIAG_CANNOT, &stops);
	m->gpus++;
	m->pairs += pairs;
	return status || (!pairs && *stops.text);
}

static int diag_collect(struct machine *m, const struct pci_device *named)
{
	int status = 0;

	report_machine(m);
	for (size_t i = 0; i < m->count; i++)
		if (pci_is_gpu(m->devices + i))
			status |= diag_collect_gpu(m, m->devices + i, named);
	return m->gpus ? status : 1;
}

/* 0 if @peer is NULL or a device of the machine. */
static int find_named(const struct machine *m, const char *peer, const struct pci_device **named)
{
	unsigned int wanted, address;

	if (!peer)
		return 0;
	if (!pci_parse_address(peer, &wanted)) {
		terminal_line(stderr, 4,
			      "climport: diag: %s is not a PCI address, such as 0000:01:00.0",
			      peer);
		return 2;
	}
	for (size_t i = 0; i < m->count; i++)
		if (pci_parse_address(m->devices[i].address, &address) && address == wanted)
			*named = m->devices + i;
	if (!*named)
		terminal_line(stderr, 4, "climport: diag: there is no PCI device %s", peer);
	return *named ? 0 : 2;
}

int diag_command(const char *root, const char *peer, bool json, FILE *out)
{
	struct machine m = { .root = root };
	const struct pci_device *named = NULL;
	int status;

	m.devices = pci_read_devices(root, &m.count);
	status = find_named(&m, peer, &named);
	if (!status) {
		status = diag_collect(&m, named);
		(json ? diag_print_json : diag_print)(out, &m);
	}
	diag_free(&m);
	return status;
}
