/* SPDX-License-Identifier: Apache-2.0 */
#include "import/kinds/udmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int udmabuf_open(void)
{
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	return device < 0 ? -errno : device;
}

bool udmabuf_is_available(void)
{
	int device = udmabuf_open();

	if (device >= 0)
		close(device);
	return device >= 0;
}

int udmabuf_create(int memfd, uint64_t offset, uint64_t size)
{
	struct udmabuf_create create = {
		.memfd = (uint32_t)memfd,
		.flags = UDMABUF_FLAGS_CLOEXEC,
		.offset = offset,
		.size = size,
	};
	int device = udmabuf_open(), fd;

	if (device < 0)
		return device;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	if (fd < 0)
		fd = -errno;
	close(device);
	return fd;
}
