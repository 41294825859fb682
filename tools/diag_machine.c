/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of the whole machine: the kernel, gdmabuf, NVIDIA's driver. */
#include "diag_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/gdmabuf.h>

#define FIRST_DRIVER 535 /* its nvidia_p2p_get_pages_persistent() does not race */

static enum answer kernel_option(struct machine *m, const char *release, const char *option)
{
	static const char *const places[] = { "%s/boot/config-%s", "%s/lib/modules/%s/config" };
	char path[PATH_MAX + 256], *line = NULL;
	enum answer answer = UNKNOWN;
	size_t size = 0, length = strlen(option);
	FILE *file = NULL;

	for (int i = 0; i < 2 && !file; i++) {
		snprintf(path, sizeof(path), places[i], m->root, release);
		file = fopen(path, "re");
	}
	if (!file)
		return UNKNOWN;
	for (answer = NO; answer == NO && getline(&line, &size, file) > 0;)
		if (!strncmp(line, option, length) && !strncmp(line + length, "=y", 2))
			answer = YES;
	free(line);
	fclose(file);
	return answer;
}

static void report_kernel(struct machine *m)
{
	char release[128];

	diag_read_line(m->root, "proc/sys/kernel/osrelease", release, sizeof(release));
	m->p2pdma = kernel_option(m, release, "CONFIG_PCI_P2PDMA");
	if (m->p2pdma == UNKNOWN) {
		diag_say(m, NOTE,
			 "The kernel's configuration is unknown: neither /boot/config-%s nor "
			 "/lib/modules/%s/config can be read.",
			 release, release);
		return;
	}
	if (m->p2pdma == YES)
		diag_say(m, OK, "The kernel is built with PCI_P2PDMA.");
	else
		diag_say(m, NOTE,
			 "The kernel is built without PCI_P2PDMA, so amdgpu and xe share host "
			 "memory only. Use a kernel with CONFIG_PCI_P2PDMA=y.");
}

/* Returns 0 and fills in @caps, or the errno. */
static int ask_gdmabuf(struct machine *m, struct gdmabuf_caps *caps)
{
	char path[PATH_MAX];
	int fd, error = 0;

	snprintf(path, sizeof(path), "%s/dev/gdmabuf", m->root);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno;
	*caps = (struct gdmabuf_caps){ .size = sizeof(*caps) };
	if (ioctl(fd, GDMABUF_CAPS, caps))
		error = errno;
	close(fd);
	return error;
}

static void report_gdmabuf(struct machine *m)
{
	struct gdmabuf_caps caps;
	int error = ask_gdmabuf(m, &caps);

	if (!error && caps.out_gpu_page_size) {
		diag_say(m, OK, "gdmabuf is loaded, with its provider %.32s.", caps.out_provider);
	} else if (!read_exists(m->root, "sys/module/gdmabuf")) {
		diag_say(m, STOP,
			 "gdmabuf is not loaded: NVIDIA GPU memory becomes a dma-buf only if the "
			 "program asks CUDA for a dma-buf. Run modprobe gdmabuf_nvidia.");
		add_reason(&m->nvidia, "gdmabuf is not loaded");
	} else if (!error || !read_exists(m->root, "sys/module/gdmabuf_nvidia")) {
		diag_say(m, STOP,
			 "gdmabuf has no provider of GPU memory. Run modprobe gdmabuf_nvidia.");
		add_reason(&m->nvidia, "gdmabuf has no provider");
	} else {
		diag_say(m, STOP,
			 "gdmabuf is loaded, but /dev/gdmabuf cannot be used: %s. Ask for access "
			 "to the file, or run climport as root.",
			 strerror(error));
		add_reason(&m->nvidia, "/dev/gdmabuf cannot be used");
	}
}

static void report_nvidia(struct machine *m)
{
	char version[64], proc[256], taint[32];
	int closed;

	if (!read_exists(m->root, "sys/module/nvidia")) {
		diag_say(m, STOP,
			 "The NVIDIA driver is not loaded. Install NVIDIA's open kernel modules, "
			 "%d or newer.",
			 FIRST_DRIVER);
		add_reason(&m->nvidia, "the NVIDIA driver is not loaded");
		return;
	}
	diag_read_line(m->root, "sys/module/nvidia/version", version, sizeof(version));
	diag_read_line(m->root, "sys/module/nvidia/taint", taint, sizeof(taint));
	diag_read_line(m->root, "proc/driver/nvidia/version", proc, sizeof(proc));
	closed = *proc ? !strstr(proc, "Open Kernel Module") : !!strchr(taint, 'P');
	if (closed) {
		diag_say(m, STOP,
			 "The NVIDIA driver %s is the closed one: no other module may make "
			 "dma-bufs of its memory. Install the open kernel modules of the same "
			 "release, for GPUs from Turing on. Older GPUs can share host memory only.",
			 version);
		add_reason(&m->nvidia, "the NVIDIA driver is closed");
	}
	if (!*version) {
		diag_say(m, NOTE,
			 "The NVIDIA driver's version is unknown: gdmabuf needs %d or newer.",
			 FIRST_DRIVER);
	} else if (atoi(version) < FIRST_DRIVER) {
		diag_say(m, STOP,
			 "The NVIDIA driver %s is too old: gdmabuf needs %d or newer. Upgrade the "
			 "driver.",
			 version, FIRST_DRIVER);
		add_reason(&m->nvidia, "the NVIDIA driver is too old");
	} else if (!closed) {
		diag_say(m, OK, "The NVIDIA driver %s is the open one, and new enough.", version);
	}
}

void report_machine(struct machine *m)
{
	int nvidia = 0;

	report_kernel(m);
	for (size_t i = 0; i < m->count; i++)
		nvidia |= pci_is_gpu(m->devices + i) && m->devices[i].vendor == PCI_NVIDIA;
	if (nvidia) {
		report_nvidia(m);
		report_gdmabuf(m);
	}
}
