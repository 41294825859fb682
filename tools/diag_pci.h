/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCI devices as sysfs shows them, with BARs, and with the bridges above; and small files of sysfs and
 * procfs, below a folder.
 */
#ifndef TOOLS_DIAG_PCI_H
#define TOOLS_DIAG_PCI_H

#include <stddef.h>
#include <sys/types.h>

#define PCI_NVIDIA 0x10de

enum answer { UNKNOWN, NO, YES };

/* Reads at most @size - 1 bytes and adds a zero.  Returns the number of bytes; -1: no file. */
ssize_t read_bytes(const char *dir, const char *name, char *text, size_t size);
/* The first line, without the newline; "" if the file has no line. */
const char *diag_read_line(const char *dir, const char *name, char *text, size_t size);
int read_exists(const char *root, const char *name);

struct pci_device {
	char address[16];
	char *path;	 /* of the device's folder, without links: names all bridges above */
	char driver[64]; /* "" if no driver is bound */
	unsigned int vendor, id, class;
	int node; /* -1 unknown */
};

/* All devices, in the order of addresses.  The caller frees the array and each path. */
struct pci_device *pci_read_devices(const char *root, size_t *count);

/* 0 if @text is no address.  The domain may be left out. */
int pci_parse_address(const char *text, unsigned int *address);

/* The size of the largest prefetchable memory BAR that has an address; 0 without such a BAR. */
size_t pci_bar_size(const struct pci_device *d);

/* A display without such a BAR, like a server's console, is no GPU: no memory to share. */
int pci_is_gpu(const struct pci_device *d);
/* Whether the device could use a GPU's memory. */
int pci_is_peer(const struct pci_device *d);
const char *pci_kind(const struct pci_device *d);
/* Whether both are functions of one device. */
int pci_same_slot(const struct pci_device *a, const struct pci_device *b);

/* Whether the folder is a PCI device's.  Folders above the bridges are not. */
int pci_is_device(const char *path);

/* The length of the common start of both paths: whole names, without the last slash. */
size_t pci_common_length(const char *a, const char *b);

/* Whether the bridge sends requests or completions to the root (ACS). */
enum answer pci_redirects(const char *path);

#endif
