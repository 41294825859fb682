/* SPDX-License-Identifier: Apache-2.0 */
#include "diag.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/gdmabuf.h>

#define NVIDIA 0x10de
#define FIRST_DRIVER 535 /* with nvidia_p2p_get_pages_persistent() that does not race */
#define MIB (1ull << 20)
#define ENOUGH_MEMLOCK (64 * MIB)

enum answer { UNKNOWN, NO, YES };

struct device {
	char address[16];
	char *path;	 /* of its folder, without links: names all bridges above it */
	char driver[64]; /* "" if none is bound */
	unsigned int vendor, id, class;
	int node; /* -1 unknown */
};

/* Short reasons, for a verdict. */
struct reasons {
	char text[512];
};

struct machine {
	FILE *out;
	const char *root;
	struct device *devices;
	size_t count;
	int gdmabuf; /* descriptor or -1 */
	enum answer p2pdma;
	struct reasons nvidia; /* what stops all NVIDIA GPUs */
};

static void add_reason(struct reasons *reasons, const char *reason)
{
	size_t used = strlen(reasons->text);

	snprintf(reasons->text + used, sizeof(reasons->text) - used, "%s%s", used ? "; " : "",
		 reason);
}

__attribute__((format(printf, 3, 4))) static void say(const struct machine *m, const char *mark,
						      const char *format, ...)
{
	va_list args;

	fprintf(m->out, "  %-5s ", mark);
	va_start(args, format);
	vfprintf(m->out, format, args);
	va_end(args);
	fputc('\n', m->out);
}

/* Reads at most @size - 1 bytes, and ends them.  Returns how many, -1 if there is no such file. */
static ssize_t read_path(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 0;

	text[0] = '\0';
	if (fd < 0)
		return -1;
	while (used < size - 1 && (n = read(fd, text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	text[used] = '\0';
	return n < 0 && !used ? -1 : (ssize_t)used;
}

static ssize_t read_in(const char *dir, const char *name, char *text, size_t size)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return read_path(path, text, size);
}

/* The first line, without its end; "" if there is none. */
static const char *line_in(const char *dir, const char *name, char *text, size_t size)
{
	read_in(dir, name, text, size);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static int is_there(const struct machine *m, const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", m->root, name);
	return !access(path, F_OK);
}

static int parse_address(const char *text, unsigned int *address)
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

static unsigned int number_in(const char *dir, const char *name)
{
	char text[32];

	return (unsigned int)strtoul(line_in(dir, name, text, sizeof(text)), NULL, 16);
}

static void read_device(struct device *d)
{
	char path[2 * PATH_MAX], driver[PATH_MAX], node[32];
	ssize_t n;

	d->vendor = number_in(d->path, "vendor");
	d->id = number_in(d->path, "device");
	d->class = number_in(d->path, "class") >> 8;
	d->node = *line_in(d->path, "numa_node", node, sizeof(node)) ? atoi(node) : -1;
	snprintf(path, sizeof(path), "%s/driver", d->path);
	n = readlink(path, driver, sizeof(driver) - 1);
	if (n <= 0)
		return;
	driver[n] = '\0';
	snprintf(d->driver, sizeof(d->driver), "%.63s", basename(driver));
}

static void read_devices(struct machine *m)
{
	char dir[PATH_MAX], path[2 * PATH_MAX];
	struct dirent **names;
	unsigned int address;
	int n;

	snprintf(dir, sizeof(dir), "%s/sys/bus/pci/devices", m->root);
	n = scandir(dir, &names, NULL, alphasort);
	m->devices = calloc(n > 0 ? (size_t)n : 1, sizeof(*m->devices));
	for (int i = 0; i < n; i++) {
		struct device *d = m->devices + m->count;

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		if (m->devices && parse_address(names[i]->d_name, &address) &&
		    (d->path = realpath(path, NULL))) {
			snprintf(d->address, sizeof(d->address), "%.15s", names[i]->d_name);
			read_device(d);
			m->count++;
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

static const char *size_text(unsigned long long bytes, char *text, size_t size)
{
	if (bytes >= 1024 * MIB && !(bytes % (1024 * MIB)))
		snprintf(text, size, "%llu GiB", bytes >> 30);
	else
		snprintf(text, size, "%llu MiB", bytes >> 20);
	return text;
}

/* The largest prefetchable memory BAR that has an address; 0 if none has. */
static unsigned long long bar_size(const struct device *d, int *bar)
{
	const unsigned long long memory = 0x200, prefetch = 0x2000, unset = 0x20000000;
	unsigned long long start, end, flags, largest = 0;
	char text[4096], *line = text;

	read_in(d->path, "resource", text, sizeof(text));
	for (int i = 0; i < 6 && sscanf(line, "%llx %llx %llx", &start, &end, &flags) == 3; i++) {
		if (flags & memory && flags & prefetch && !(flags & unset) && end > start &&
		    end - start + 1 > largest) {
			largest = end - start + 1;
			*bar = i;
		}
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return largest;
}

/* How large the BAR could be, for all of the memory; 0 if unknown. */
static unsigned long long memory_size(const struct device *d, int bar)
{
	char name[32], text[64];
	unsigned long long sizes;

	if (*line_in(d->path, "mem_info_vram_total", text, sizeof(text)))
		return strtoull(text, NULL, 10);
	snprintf(name, sizeof(name), "resource%d_resize", bar);
	sizes = strtoull(line_in(d->path, name, text, sizeof(text)), NULL, 16);
	if (!sizes || sizes >> 44)
		return 0;
	return MIB << (63 - __builtin_clzll(sizes));
}

/* A display without such a BAR, as servers have one for their console, shares nothing. */
static int is_gpu(const struct device *d)
{
	int bar;

	if (d->class >> 8 != 0x03 && d->class >> 8 != 0x12)
		return 0;
	return d->vendor == NVIDIA || bar_size(d, &bar);
}

static int is_peer(const struct device *d)
{
	return d->class >> 8 == 0x02 || d->class == 0x0108 ||
	       (d->class >> 8 == 0x04 && d->class != 0x0401 && d->class != 0x0403) || is_gpu(d);
}

static const char *kind_of(const struct device *d)
{
	static const char *const kinds[] = { [0x01] = "storage",
					     [0x02] = "network",
					     [0x03] = "GPU",
					     [0x04] = "multimedia",
					     [0x12] = "accelerator" };
	unsigned int base = d->class >> 8;

	return base < sizeof(kinds) / sizeof(kinds[0]) && kinds[base] ? kinds[base] : "device";
}

static enum answer kernel_option(const struct machine *m, const char *release, const char *option)
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

static void report_kernel(struct machine *m, const struct gdmabuf_caps *caps)
{
	char release[128];
	enum answer revocable;

	line_in(m->root, "proc/sys/kernel/osrelease", release, sizeof(release));
	m->p2pdma = kernel_option(m, release, "CONFIG_PCI_P2PDMA");
	revocable = kernel_option(m, release, "CONFIG_DMABUF_MOVE_NOTIFY");
	if (caps) {
		m->p2pdma = caps->out_caps & GDMABUF_CAP_P2PDMA ? YES : NO;
		revocable = caps->out_caps & GDMABUF_CAP_REVOCABLE_DMA ? YES : NO;
	}
	if (m->p2pdma == UNKNOWN) {
		say(m, "note",
		    "What the kernel was built with is unknown: neither /boot/config-%s nor "
		    "/lib/modules/%s/config can be read.",
		    release, release);
		return;
	}
	if (m->p2pdma == YES)
		say(m, "ok", "The kernel is built with PCI_P2PDMA.");
	else
		say(m, "note",
		    "The kernel is built without PCI_P2PDMA: it cannot tell which devices reach "
		    "each other, and amdgpu and xe then share host memory only. "
		    "Use one with CONFIG_PCI_P2PDMA=y.");
	if (revocable == NO)
		say(m, "note",
		    "Devices can import only memory that stays pinned, nothing revocable: the "
		    "kernel "
		    "is built without DMABUF_MOVE_NOTIFY.");
}

/* Fills in @caps and returns 1 if gdmabuf answers. */
static int open_gdmabuf(struct machine *m, struct gdmabuf_caps *caps)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/dev/gdmabuf", m->root);
	m->gdmabuf = open(path, O_RDWR | O_CLOEXEC);
	*caps = (struct gdmabuf_caps){ .size = sizeof(*caps) };
	return m->gdmabuf >= 0 && !ioctl(m->gdmabuf, GDMABUF_CAPS, caps);
}

static void report_gdmabuf(struct machine *m, const struct gdmabuf_caps *caps, int error)
{
	if (caps && caps->out_caps & GDMABUF_CAP_GPU) {
		say(m, "ok", "gdmabuf is loaded, with its provider %.32s.", caps->out_provider);
	} else if (!is_there(m, "sys/module/gdmabuf")) {
		say(m, "stop",
		    "gdmabuf is not loaded: NVIDIA GPU memory becomes a dma-buf only if the "
		    "program "
		    "asks CUDA for one. Run modprobe gdmabuf_nvidia.");
		add_reason(&m->nvidia, "gdmabuf is not loaded");
	} else if (caps || !is_there(m, "sys/module/gdmabuf_nvidia")) {
		say(m, "stop",
		    "gdmabuf has no provider of GPU memory. Run modprobe gdmabuf_nvidia.");
		add_reason(&m->nvidia, "gdmabuf has no provider");
	} else {
		say(m, "stop",
		    "gdmabuf is loaded, but /dev/gdmabuf cannot be used: %s. "
		    "Ask for access to it, or run this as root.",
		    strerror(error));
		add_reason(&m->nvidia, "/dev/gdmabuf cannot be used");
	}
}

static void report_nvidia(struct machine *m)
{
	char version[64], proc[256], taint[32];
	int closed;

	if (!is_there(m, "sys/module/nvidia")) {
		say(m, "stop",
		    "The NVIDIA driver is not loaded. Install its open kernel modules, %d or "
		    "newer.",
		    FIRST_DRIVER);
		add_reason(&m->nvidia, "the NVIDIA driver is not loaded");
		return;
	}
	line_in(m->root, "sys/module/nvidia/version", version, sizeof(version));
	line_in(m->root, "sys/module/nvidia/taint", taint, sizeof(taint));
	line_in(m->root, "proc/driver/nvidia/version", proc, sizeof(proc));
	closed = *proc ? !strstr(proc, "Open Kernel Module") : !!strchr(taint, 'P');
	if (closed) {
		say(m, "stop",
		    "The NVIDIA driver %s is the closed one, whose memory no dma-buf may lead to. "
		    "Install the open kernel modules of the same release; they need Turing or "
		    "newer, "
		    "older GPUs can share host memory only.",
		    version);
		add_reason(&m->nvidia, "the NVIDIA driver is closed");
	}
	if (!*version) {
		say(m, "note", "The NVIDIA driver does not say its version: %d is the first to do.",
		    FIRST_DRIVER);
	} else if (atoi(version) < FIRST_DRIVER) {
		say(m, "stop",
		    "The NVIDIA driver %s is too old: gdmabuf needs what %d brought. Upgrade it.",
		    version, FIRST_DRIVER);
		add_reason(&m->nvidia, "the NVIDIA driver is too old");
	} else if (!closed) {
		say(m, "ok", "The NVIDIA driver %s is the open one, and new enough.", version);
	}
}

/* The line's first word after @name, "" if there is none. */
static const char *word_after(char *text, const char *name)
{
	char *word = strstr(text, name);

	if (!word)
		return "";
	word += strlen(name);
	word += strspn(word, " \t");
	word[strcspn(word, " \t\n")] = '\0';
	return word;
}

static void report_memlock(const struct machine *m)
{
	const unsigned long long ipc_lock = 1ull << 14;
	char limits[4096], status[4096], size[32];
	const char *limit;

	read_in(m->root, "proc/self/limits", limits, sizeof(limits));
	read_in(m->root, "proc/self/status", status, sizeof(status));
	limit = word_after(limits, "Max locked memory");
	if (!*limit || !strcmp(limit, "unlimited") ||
	    strtoull(word_after(status, "CapEff:"), NULL, 16) & ipc_lock ||
	    strtoull(limit, NULL, 10) >= ENOUGH_MEMLOCK)
		return;
	say(m, "note",
	    "RLIMIT_MEMLOCK is too small: %s of host memory can be pinned. "
	    "Raise memlock in /etc/security/limits.conf.",
	    size_text(strtoull(limit, NULL, 10), size, sizeof(size)));
}

static void report_host_memory(const struct machine *m)
{
	if (!is_there(m, "dev/udmabuf"))
		say(m, "note",
		    "udmabuf is not there, which makes dma-bufs of memfds. Run modprobe udmabuf.");
	if (!is_there(m, "dev/dma_heap"))
		say(m, "note",
		    "No dma-heap is there, from which programs get dma-bufs in host memory. "
		    "Use a kernel with CONFIG_DMABUF_HEAPS_SYSTEM=y.");
	report_memlock(m);
}

static void report_machine(struct machine *m)
{
	struct gdmabuf_caps caps;
	int answers, error, nvidia = 0;

	answers = open_gdmabuf(m, &caps);
	error = errno;
	fprintf(m->out, "machine\n");
	report_kernel(m, answers ? &caps : NULL);
	for (size_t i = 0; i < m->count; i++)
		nvidia |= is_gpu(m->devices + i) && m->devices[i].vendor == NVIDIA;
	if (nvidia) {
		report_nvidia(m);
		report_gdmabuf(m, answers ? &caps : NULL, error);
	}
	report_host_memory(m);
}

static void report_bar(const struct machine *m, const struct device *gpu, struct reasons *stops)
{
	const char *advice = "Turn on Resizable BAR and Above 4G Decoding in the firmware.";
	int bar = 0;
	unsigned long long size = bar_size(gpu, &bar), memory = memory_size(gpu, bar);
	char have[32], want[32];

	size_text(size, have, sizeof(have));
	size_text(memory, want, sizeof(want));
	if (!size) {
		say(m, "stop", "The GPU has no BAR with an address for its memory. %s", advice);
		add_reason(stops, "the GPU's memory has no BAR");
	} else if (memory > size) {
		say(m, "note",
		    "The BAR is small: devices reach %s at a time, and it would need %s. %s", have,
		    want, advice);
	} else if (memory) {
		say(m, "ok", "The BAR is %s, which is all of the GPU's memory.", have);
	} else if (size <= 256 * MIB) {
		say(m, "note", "The BAR is %s, and most GPUs have more memory. %s", have, advice);
	} else {
		say(m, "ok", "The BAR is %s; the size of the GPU's memory is unknown.", have);
	}
}

static int shares_memory(const char *driver)
{
	return !strcmp(driver, "amdgpu") || !strcmp(driver, "xe") || !strcmp(driver, "habanalabs");
}

static void report_driver(const struct machine *m, const struct device *gpu, struct reasons *stops)
{
	const char *driver = *gpu->driver ? gpu->driver : "none";

	if (gpu->vendor == NVIDIA && is_there(m, "sys/module/nvidia") && strcmp(driver, "nvidia")) {
		say(m, "stop", "The GPU's driver is %s. Bind it to nvidia.", driver);
		add_reason(stops, "the GPU's driver is not nvidia");
	}
	if (gpu->vendor == NVIDIA)
		return;
	if (!shares_memory(driver)) {
		say(m, "stop",
		    "The GPU's driver is %s: of drivers other than NVIDIA's, amdgpu, xe and "
		    "habanalabs let other devices reach the memory.",
		    driver);
		add_reason(stops, "the GPU's driver does not share its memory");
	} else if (m->p2pdma == NO) {
		add_reason(stops, "the kernel is built without PCI_P2PDMA");
	}
}

/* Whether the folder is a PCI device's: what is above the bridges is not. */
static int is_device(const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned int address;

	return name && parse_address(name + 1, &address);
}

/* How much of both paths is the same: whole names, without the last slash. */
static size_t common_length(const char *a, const char *b)
{
	size_t common = 0;

	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			common = i;
	return common;
}

/* The bits of the ACS control register that send requests or completions to the root. */
static enum answer redirects(const char *path)
{
	const unsigned int acs = 0x000d, control = 6, redirect = 0x04 | 0x08 | 0x20;
	char text[4097];
	const unsigned char *bytes = (const unsigned char *)text;
	ssize_t size = read_in(path, "config", text, sizeof(text));
	unsigned int at = 0x100;

	if (size < 256) /* only root gets more than 64 */
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

/*
 * As pci_p2pdma_distance() does it: from the device up, the common bridge once.  Adds the
 * addresses to @found.  Returns NO, YES or UNKNOWN.
 */
static enum answer redirects_up(const char *from, size_t end, struct reasons *found)
{
	enum answer answer = NO, here;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", from);
	for (; strlen(path) >= end && is_device(path); *strrchr(path, '/') = '\0') {
		here = redirects(path);
		if (here == YES)
			add_reason(found, strrchr(path, '/') + 1);
		if (here == YES || (here == UNKNOWN && answer == NO))
			answer = here;
	}
	return answer;
}

struct pair {
	const struct device *gpu, *peer;
	size_t common; /* of their paths */
	int asked;     /* the kernel, which filled in: */
	struct gdmabuf_diag kernel;
	struct reasons stops, doubts;
};

static void report_acs(const struct machine *m, struct pair *p)
{
	struct reasons found = { "" };
	enum answer a = redirects_up(p->gpu->path, p->common, &found);
	enum answer b = redirects_up(p->peer->path, p->common + 1, &found);

	if (a == YES || b == YES || (p->asked && p->kernel.out_flags & GDMABUF_DIAG_ACS)) {
		say(m, "note",
		    "Access Control Services send the transactions up to the root complex, in: %s. "
		    "Boot with pci=disable_acs_redir= and these addresses, or turn ACS off in the "
		    "firmware.",
		    *found.text ? found.text : "a bridge, which root can see");
		add_reason(&p->doubts, "ACS sends it through the root complex");
	} else if (p->asked) {
		say(m, "ok", "The kernel finds no ACS redirection between them.");
	} else if (a == UNKNOWN || b == UNKNOWN) {
		say(m, "note", "Only root can read whether ACS redirects. Run this as root.");
		add_reason(&p->doubts, "ACS is unknown");
	} else {
		say(m, "ok", "No bridge between them redirects (ACS).");
	}
}

static void report_topology(const struct machine *m, struct pair *p)
{
	char bridge[PATH_MAX];
	const char *name;

	snprintf(bridge, sizeof(bridge), "%.*s", (int)p->common, p->gpu->path);
	name = strrchr(bridge, '/') + 1;
	if (is_device(bridge)) {
		say(m, "ok", "Both are below the bridge %s.", name);
		report_acs(m, p);
	} else {
		say(m, "note",
		    "No bridge is common to them%s: the way leads through the root complex, which "
		    "not every CPU forwards. Put both below one PCIe switch.",
		    strncmp(name, "pci", 3) ? ", nor the host bridge" : "");
		add_reason(&p->doubts, "the way leads through the root complex");
	}
	if (p->gpu->node >= 0 && p->peer->node >= 0 && p->gpu->node != p->peer->node)
		say(m, "note",
		    "They are on different NUMA nodes, %d and %d: slow. Use slots of one socket.",
		    p->gpu->node, p->peer->node);
}

static void report_iommu(const struct machine *m, struct pair *p)
{
	char type[32];

	line_in(p->peer->path, "iommu_group/type", type, sizeof(type));
	if (!strncmp(type, "DMA", 3) ||
	    (!*type && p->asked && p->kernel.out_flags & GDMABUF_DIAG_IOMMU)) {
		say(m, "note",
		    "An IOMMU translates the device's DMA (%s), so all of it goes up to the root "
		    "complex, and dma-bufs of NVIDIA's own driver fail. Boot with iommu=pt.",
		    *type ? type : "says gdmabuf");
		add_reason(&p->doubts, "an IOMMU translates it");
	} else if (!*type) {
		say(m, "ok", "No IOMMU translates the device's DMA.");
	} else if (!strcmp(type, "identity")) {
		say(m, "ok", "The IOMMU passes the device's DMA through (identity).");
	} else {
		say(m, "stop",
		    "The device's IOMMU group is %s: another program or nobody has the device. "
		    "Give it back to its driver.",
		    type);
		add_reason(&p->stops, "the device's IOMMU group is not its driver's");
	}
}

static void ask_kernel(const struct machine *m, struct pair *p)
{
	p->kernel = (struct gdmabuf_diag){ .size = sizeof(p->kernel) };
	if (m->gdmabuf < 0 || !parse_address(p->gpu->address, &p->kernel.gpu) ||
	    !parse_address(p->peer->address, &p->kernel.peer))
		return;
	p->asked = !ioctl(m->gdmabuf, GDMABUF_DIAG, &p->kernel);
}

static void report_distance(const struct machine *m, struct pair *p)
{
	if (!p->asked || !(p->kernel.out_flags & GDMABUF_DIAG_DISTANCE))
		return;
	if (p->kernel.out_distance < 0) {
		say(m, "stop",
		    "The kernel knows no way between them that works. "
		    "Put both below one PCIe switch, without ACS.");
		add_reason(&p->stops, "the kernel knows no way that works");
		return;
	}
	say(m, "ok", "The kernel's own distance is %d.", p->kernel.out_distance);
	p->doubts.text[0] = '\0';
}

static int report_pair(const struct machine *m, const struct device *gpu, const struct device *peer,
		       const struct reasons *gpu_stops)
{
	struct pair p = { .gpu = gpu, .peer = peer, .stops = *gpu_stops };

	fprintf(m->out, "GPU %s and %s %s (%04x:%04x)\n", gpu->address, kind_of(peer),
		peer->address, peer->vendor, peer->id);
	p.common = common_length(gpu->path, peer->path);
	ask_kernel(m, &p);
	if (!*peer->driver) {
		say(m, "stop", "The device has no driver to import a dma-buf. Load it.");
		add_reason(&p.stops, "the device has no driver");
	}
	report_topology(m, &p);
	report_iommu(m, &p);
	report_distance(m, &p);
	fprintf(m->out, "  verdict: ");
	if (*p.stops.text)
		fprintf(m->out, "%s cannot reach the memory of %s: %s.\n", peer->address,
			gpu->address, p.stops.text);
	else if (*p.doubts.text)
		fprintf(m->out, "%s may reach the memory of %s: nothing known stops it, but %s.\n",
			peer->address, gpu->address, p.doubts.text);
	else
		fprintf(m->out, "%s can reach the memory of %s: nothing stops it.\n", peer->address,
			gpu->address);
	return *p.stops.text ? 1 : 0;
}

static int same_slot(const struct device *a, const struct device *b)
{
	return strlen(a->address) == strlen(b->address) &&
	       !strncmp(a->address, b->address, strlen(a->address) - 2);
}

static int report_gpu(const struct machine *m, const struct device *gpu, const struct device *named)
{
	struct reasons stops = { "" };
	int status = 0, pairs = 0;

	if (gpu->vendor == NVIDIA)
		stops = m->nvidia;
	fprintf(m->out, "GPU %s (%04x:%04x)\n", gpu->address, gpu->vendor, gpu->id);
	report_driver(m, gpu, &stops);
	report_bar(m, gpu, &stops);
	for (size_t i = 0; i < m->count; i++) {
		const struct device *d = m->devices + i;

		if (d == gpu || (named ? d != named : !is_peer(d) || same_slot(d, gpu)))
			continue;
		status |= report_pair(m, gpu, d, &stops);
		pairs++;
	}
	if (!pairs)
		fprintf(m->out, "  verdict: no other device is here that could reach %s%s%s.\n",
			gpu->address, *stops.text ? ", and none could: " : "", stops.text);
	return status || (!pairs && *stops.text);
}

static int report(struct machine *m, const struct device *named)
{
	int status = 0, gpus = 0;

	report_machine(m);
	for (size_t i = 0; i < m->count; i++)
		if (is_gpu(m->devices + i)) {
			status |= report_gpu(m, m->devices + i, named);
			gpus++;
		}
	if (gpus)
		return status;
	fprintf(m->out, "verdict: there is no GPU: no PCI device of class 03 or 12 has a "
			"prefetchable memory BAR.\n");
	return 1;
}

/* 0 if there is no @peer to find, or it is found. */
static int find_named(const struct machine *m, const char *peer, const struct device **named)
{
	unsigned int wanted, address;

	if (!peer)
		return 0;
	if (!parse_address(peer, &wanted)) {
		fprintf(stderr, "climport: diag: %s is not a PCI address, such as 0000:01:00.0\n",
			peer);
		return 2;
	}
	for (size_t i = 0; i < m->count; i++)
		if (parse_address(m->devices[i].address, &address) && address == wanted)
			*named = m->devices + i;
	if (!*named)
		fprintf(stderr, "climport: diag: there is no PCI device %s\n", peer);
	return *named ? 0 : 2;
}

int diag(const char *root, const char *peer, FILE *out)
{
	struct machine m = { .out = out, .root = root, .gdmabuf = -1 };
	const struct device *named = NULL;
	int status;

	read_devices(&m);
	status = find_named(&m, peer, &named);
	if (!status)
		status = report(&m, named);
	if (m.gdmabuf >= 0)
		close(m.gdmabuf);
	for (size_t i = 0; i < m.count; i++)
		free(m.devices[i].path);
	free(m.devices);
	return status;
}
