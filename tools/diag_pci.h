/* SPDX-License-Identifier: Apache-2.0 */
/* PCI devices as sysfs shows them: their BARs, and the bridges above them. */
#ifndef TOOLS_DIAG_PCI_H
#define TOOLS_DIAG_PCI_H

#include <stddef.h>

#include "diag_read.h"

#define PCI_NVIDIA 0x10de

struct pci_device {
	char address[16];
	char *path;	 /* of its folder, without links: names all bridges above it */
	char driver[64]; /* "" if none is bound */
	unsigned int vendor, id, class;
	int node; /* -1 unknown */
};

/* Of one machine, in the order of their addresses.  The caller frees it, and each path. */
struct pci_device *pci_read_devices(const char *root, size_t *count);

/* 0 if @text is no address.  The domain may be left out. */
int pci_parse_address(const char *text, unsigned int *address);

/* The largest prefetchable memory BAR that has an address; 0 if none has. */
unsigned long long pci_bar_size(const struct pci_device *d, int *bar);

/* How large the BAR could be, for all of the memory; 0 if unknown. */
unsigned long long pci_memory_size(const struct pci_device *d, int bar);

/* A display without such a BAR, as servers have one for their console, shares nothing. */
int pci_is_gpu(const struct pci_device *d);
/* Could use a GPU's memory. */
int pci_is_peer(const struct pci_device *d);
const char *pci_kind(const struct pci_device *d);
/* Functions of one device. */
int pci_same_slot(const struct pci_device *a, const struct pci_device *b);

/* Whether the folder is a PCI device's: what is above the bridges is not. */
int pci_is_device(const char *path);

/* How much of both paths is the same: whole names, without the last slash. */
size_t pci_common_length(const char *a, const char *b);

/* Whether the bridge sends requests or completions to the root (ACS). */
enum answer pci_redirects(const char *path);

#endif
