/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/rm/rm.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "import/nvidia/pinnable.h"
#include "import/nvidia/rm/rm_device.h"
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
