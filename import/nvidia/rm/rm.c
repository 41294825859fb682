/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/rm/rm.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "import/nvidia/pinnable.h"
#include "import/nvidia/rm/rm_device.h"
#include "import/nvidia/rm/rm_refusal.h"
#include "util/log.h"

/* The descriptor keeps the memory, so the object goes at once. */
static int rm_export(const struct rm_device *device, uint32_t object, int *fd)
{
	int made = rm_device_export(device, object);

	rm_device_free(device, object);
	if (made < 0)
		return made;
	*fd = made;
	return 0;
}

int rm_import_host(const unsigned char uuid[RM_UUID_SIZE], void *addr, size_t size, int *fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rm_device *device = NULL;
	uint32_t object;
	int ret;

	if (!size || ((uintptr_t)addr | size) & (page - 1))
		return log_errno(EINVAL, "%zu bytes at %p are not whole pages", size, addr);
	ret = pinnable_check(addr, size, PINNABLE_MEMORY | PINNABLE_COPIES);
	if (!ret)
		ret = rm_device_get(uuid, &device);
	if (!ret)
		ret = rm_device_pin(device, addr, size, &object);
	return ret ? ret : rm_export(device, object, fd);
}

/*
 * A dma-buf may be memory of the host, or of a device behind PCI.  RM attaches to both.  Where the
 * GPU cannot reach the device, nothing fails before a kernel touches the memory, and then the
 * context of the program is lost (two H100 of one virtual machine: Xid 94).  No interface tells one
 * from the other, so the name of the exporter decides (/proc/self/fdinfo, exp_name).
 *
 * A try in a process of climport's is no way: a dma-buf says nothing of the next dma-buf of the
 * exporter, and a fault that the GPU does not contain ends the contexts of other programs (Xid 95).
 */

/*
 * Exporters of Linux whose memory is the host's.  The name is a module's, or a heap's.  DRM drivers
 * share the name drm, for host memory (vgem, vkms) and for memory of GPUs, and are refused.
 */
static const char *const rm_dmabuf_host_exporters[] = {
	"udmabuf",	      /* memfds */
	"system",	      /* the system's dma-heap */
	"default_cma_region", /* heaps of the CMA area: of new kernels, */
	"linux,cma",	      /* of the device tree, */
	"reserved",	      /* and of the command line */
	"videobuf2_vmalloc",  /* V4L2's allocators */
	"videobuf2_dma_contig",
	"videobuf2_dma_sg",
	"gdmabuf-host", /* climport's module: ranges of a process */
};

static bool rm_dmabuf_is_host(const char *exporter)
{
	size_t count = sizeof(rm_dmabuf_host_exporters) / sizeof(*rm_dmabuf_host_exporters);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(exporter, rm_dmabuf_host_exporters[i]))
			return true;
	return false;
}

/* False: the file is no dma-buf, or there is no /proc. */
static bool rm_dmabuf_exporter(int dmabuf, char name[32])
{
	char path[48], line[128];
	FILE *info;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", dmabuf);
	info = fopen(path, "re");
	if (!info)
		return false;
	while (!found && fgets(line, sizeof(line), info))
		found = sscanf(line, "exp_name: %31[^\n]", name) == 1;
	fclose(info);
	return found;
}

int rm_dmabuf_check(int dmabuf, size_t size)
{
	off_t has = lseek(dmabuf, 0, SEEK_END);
	char exporter[32];

	if (has < 0 || !rm_dmabuf_exporter(dmabuf, exporter))
		return log_errno(EBADF, "descriptor %d is not a dma-buf", dmabuf);
	if (!size || size > (size_t)has)
		return log_errno(ERANGE, "%zu bytes exceed dma-buf %d, which has %lld", size,
				 dmabuf, (long long)has);
	if (rm_dmabuf_is_host(exporter))
		return 0;
	return log_errno(EOPNOTSUPP,
			 "dma-buf %d is of the exporter %s, not known to give host memory "
			 "alone: " RM_REFUSAL,
			 dmabuf, exporter);
}

int rm_import_dmabuf(const unsigned char uuid[RM_UUID_SIZE], int dmabuf, size_t size, int *fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t whole = (size + page - 1) & ~(page - 1);
	struct rm_device *device = NULL;
	uint32_t object;
	int ret = rm_dmabuf_check(dmabuf, size);

	if (!ret)
		ret = rm_device_get(uuid, &device);
	if (!ret)
		ret = rm_device_attach(device, dmabuf, whole, &object);
	return ret ? ret : rm_export(device, object, fd);
}
