/* SPDX-License-Identifier: Apache-2.0 */
#include "mockgpu.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int mockgpu_open_device(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		test_skip("%s: %s", path, strerror(errno));
	return fd;
}

int mockgpu_open(void)
{
	static const struct mock_config works;
	int gpu = mockgpu_open_device("/dev/gdmabuf_mock");

	mockgpu_config(gpu, &works);
	return gpu;
}

uint64_t mockgpu_alloc(int gpu, size_t length, uint32_t flags)
{
	struct mock_alloc alloc = { .length = length, .flags = flags };

	EXPECT_EQ(ioctl(gpu, MOCK_ALLOC, &alloc), 0);
	return alloc.va;
}

int mockgpu_try_free(int gpu, uint64_t va)
{
	struct mock_free arg = { .va = va };

	return ioctl(gpu, MOCK_FREE, &arg) ? -errno : 0;
}

void mockgpu_free(int gpu, uint64_t va)
{
	EXPECT_EQ(mockgpu_try_free(gpu, va), 0);
}

static void mockgpu_copy(int gpu, uint64_t va, uintptr_t user, size_t length, uint32_t to_gpu)
{
	struct mock_copy arg = { .va = va, .user = user, .length = length, .to_gpu = to_gpu };

	EXPECT_EQ(ioctl(gpu, MOCK_COPY, &arg), 0);
}

void mockgpu_write(int gpu, uint64_t va, const void *bytes, size_t length)
{
	mockgpu_copy(gpu, va, (uintptr_t)bytes, length, 1);
}

void mockgpu_read(int gpu, uint64_t va, void *bytes, size_t length)
{
	mockgpu_copy(gpu, va, (uintptr_t)bytes, length, 0);
}

void mockgpu_config(int gpu, const struct mock_config *config)
{
	EXPECT_EQ(ioctl(gpu, MOCK_CONFIG, config), 0);
}

struct mock_stats mockgpu_stats(int gpu)
{
	struct mock_stats stats;

	EXPECT_EQ(ioctl(gpu, MOCK_STATS, &stats), 0);
	return stats;
}

int test_importer_open(void)
{
	return mockgpu_open_device("/dev/gdmabuf_importer");
}

int test_importer_attach(int importer, int fd, uint32_t mode, uint32_t flags, uint32_t direction)
{
	struct gdmabuf_importer_attach arg = {
		.fd = fd,
		.mode = mode,
		.flags = flags,
		.direction = direction,
	};

	return ioctl(importer, GDMABUF_IMPORTER_ATTACH, &arg) ? -errno : 0;
}

int importer_call(int importer, unsigned long request, uint32_t value)
{
	return ioctl(importer, request, &value) ? -errno : 0;
}

int importer_access(int importer, unsigned long request, uint64_t offset, void *data,
		    uint32_t length)
{
	struct gdmabuf_importer_access arg = {
		.offset = offset,
		.data = (uintptr_t)data,
		.length = length,
	};

	return ioctl(importer, request, &arg) ? -errno : 0;
}

int test_importer_map(int importer, struct gdmabuf_importer_map *map)
{
	memset(map, 0, sizeof(*map));
	return ioctl(importer, GDMABUF_IMPORTER_MAP, map) ? -errno : 0;
}

void parameter_set(const char *module, const char *name, const char *value)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	EXPECT(fd >= 0);
	EXPECT_EQ(write(fd, value, strlen(value)), (ssize_t)strlen(value));
	close(fd);
}
