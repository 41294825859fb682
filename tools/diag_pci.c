/* SPDX-License-Identifier: Apache-2.0 */
#include "diag_pci.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t read_bytes(const char *dir, const char *name, char *text, size_t size)
{
	char path[2 * PATH_MAX];
	size_t used = 0;
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	text[0] = '\0';
	if (fd < 0)
		return -1;
	while (used < size - 1 && (n = read(fd, text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	text[used] = '\0';
	return n < 0 && !used ? -1 : (ssize_t)used;
}

const char *diag_read_line(const char *dir, const char *name, char *text, size_t size)
{
	read_bytes(dir, name, text, size);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

int read_exists(const char *root, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return !access(path, F_OK);
}

static unsigned int read_number(const char *dir, const char *name)
{
	char text[32];

	return (unsigned int)strtoul(diag_read_line(dir, name, text, sizeof(text)), NULL, 16);
}

int pci_parse_address(const char *text, unsigned int *address)
{
	unsigned int domain = 0, bus, slot, function;
	int end = -1;

	if (text[strspn(text, "0123456789abcdefABCDEF:.")])
		return 0; /* sscanf() takes spaces, signs and 0x */
	if (sscanf(text, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &end) != 4 || end < 0) {
		domain = 0;
		end = -1;
		if (sscanf(text, "%x:%x.%x%n", &bus, &slot, &function, &end) != 3 || end < 0)
			return 0;
	}
	if (text[end] || domain > 0xffff || bus > 0xff || slot > 0x1f || function > 7)
		return 0;
	*address = domain << 16 | bus << 8 | slot << 3 | function;
	return 1;
}

static void read_device(struct pci_device *d)
{
	char path[2 * PATH_MAX], driver[PATH_MAX], node[32];
	ssize_t n;

	d->vendor = read_number(d->path, "vendor");
	d->id = read_number(d->path, "device");
	d->class = read_number(d->path, "class") >> 8;
	d->node = *diag_read_line(d->path, "numa_node", node, sizeof(node)) ? atoi(node) : -1;
	snprintf(path, sizeof(path), "%s/driver", d->path);
	n = readlink(path, driver, sizeof(driver) - 1);
	if (n <= 0)
		return;
	driver[n] = '\0';
	snprintf(d->driver, sizeof(d->driver), "%.63s", basename(driver));
}

struct pci_device *pci_read_devices(const char *root, size_t *count)
{
	char dir[PATH_MAX], path[2 * PATH_MAX];
	struct pci_device *devices;
	struct dirent **names;
	unsigned int address;
	int n;

	snprintf(dir, sizeof(dir), "%s/sys/bus/pci/devices", root);
	n = scandir(dir, &names, NULL, alphasort);
	devices = calloc(n > 0 ? (size_t)n : 1, sizeof(*devices));
	*count = 0;
	for (int i = 0; i < n; i++) {
		struct pci_device *d = devices ? &devices[*count] : NULL;

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (d && pci_parse_address(names[i]->d_name, &address) &&
		    (d->path = realpath(path, NULL))) {
			snprintf(d->address, sizeof(d->address), "%.15s", names[i]->d_name);
			read_device(d);
			(*count)++;
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return devices;
}

size_t pci_bar_size(const struct pci_device *d)
{
	const unsigned long long memory = 0x200, prefetch = 0x2000, unset = 0x20000000;
	unsigned long long start, end, flags, largest = 0;
	char text[4096], *line = text;

	read_bytes(d->path, "resource", text, sizeof(text));
	for (int i = 0; i < 6 && sscanf(line, "%llx %llx %llx", &start, &end, &flags) == 3; i++) {
		if (flags & memory && flags & prefetch && !(flags & unset) && end > start &&
		    end - start + 1 > largest)
			largest = end - start + 1;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return largest;
}

int pci_is_gpu(const struct pci_device *d)
{
	if (d->class >> 8 != 0x03 && d->class >> 8 != 0x12)
		return 0;
	return d->vendor == PCI_NVIDIA || pci_bar_size(d) > 0;
}

int pci_is_peer(const struct pci_device *d)
{
	return d->class >> 8 == 0x02 || d->class == 0x0108 ||
	       (d->class >> 8 == 0x04 && d->class != 0x0401 && d->class != 0x0403) || pci_is_gpu(d);
}

const char *pci_kind(const struct pci_device *d)
{
	static const char *const kinds[] = { [0x01] = "storage",
					     [0x02] = "network",
					     [0x03] = "GPU",
					     [0x04] = "multimedia",
					     [0x12] = "accelerator" };
	unsigned int base = d->class >> 8;

	return base < sizeof(kinds) / sizeof(kinds[0]) && kinds[base] ? kinds[base] : "device";
}

int pci_same_slot(const struct pci_device *a, const struct pci_device *b)
{
	return strlen(a->address) == strlen(b->address) &&
	       !strncmp(a->address, b->address, strlen(a->address) - 2);
}

int pci_is_device(const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned int address;

	return name && pci_parse_address(name + 1, &address);
}

size_t pci_common_length(const char *a, const char *b)
{
	size_t common = 0;

	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			common = i;
	return common;
}

enum answer pci_redirects(const char *path)
{
	const unsigned int acs = 0x000d, control = 6, redirect = 0x04 | 0x08 | 0x20;
	char text[4097];
	const unsigned char *bytes = (const unsigned char *)text;
	ssize_t size = read_bytes(path, "config", text, sizeof(text));
	unsigned int at = 0x100;

	if (size < 256) /* only root reads more than 64 bytes */
		return UNKNOWN;
	for (int i = 0; i < 1024 && at >= 0x100 && at + 8 <= (size_t)size; i++) {
		unsigned int head = bytes[at] | bytes[at + 1] << 8;
		unsigned int next = (bytes[at + 2] | bytes[at + 3] << 8) >> 4;

		if (head == acs)
			return bytes[at + control] & redirect ? YES : NO;
		at = next & ~3u;
	}
	return NO;
}
