/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/fdinfo of a dma-buf, for tools that search for the holders of memory. */
#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

#include <unistd.h>

/* The value of @key in the fdinfo of @fd; empty without such a line. */
static const char *fdinfo_read(int fd, const char *key)
{
	static char value[64];
	char path[64], line[256], format[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	snprintf(format, sizeof(format), "%s: %%63s", key);
	file = fopen(path, "r");
	EXPECT(file);
	value[0] = '\0';
	while (fgets(line, sizeof(line), file) && sscanf(line, format, value) != 1)
		;
	fclose(file);
	return value;
}

TEST(fdinfo_host,
     "The fdinfo of a dma-buf of host memory shows the size and the exporter gdmabuf-host.")
{
	int ctx = gdm_open();
	struct gdm_export e;

	EXPECT_EQ(gdm_export_host(ctx, pages_new(3 * PAGE, 0), 3 * PAGE, 0, &e), 0);
	EXPECT_EQ(strcmp(fdinfo_read(e.fd, "exp_name"), "gdmabuf-host"), 0);
	EXPECT_EQ(atoll(fdinfo_read(e.fd, "size")), 3 * PAGE);
	close(e.fd);
	close(ctx);
}

static void expect_gpu(uint32_t flags, const char *name)
{
	int ctx = gdm_open(), gpu = mockgpu_open();
	uint64_t va = mockgpu_alloc(gpu, 2 * GPU_PAGE, 0);
	struct gdm_export e;

	EXPECT_EQ(gdm_export_gpu(ctx, va, 2 * GPU_PAGE, flags, &e), 0);
	EXPECT_EQ(strcmp(fdinfo_read(e.fd, "exp_name"), name), 0);
	EXPECT_EQ(atoll(fdinfo_read(e.fd, "size")), 2 * GPU_PAGE);
	close(e.fd);
	close(gpu);
	close(ctx);
}

TEST(fdinfo_gpu, "The fdinfo of a dma-buf of GPU memory shows the exporter gdmabuf-gpu.")
{
	expect_gpu(0, "gdmabuf-gpu");
}

TEST(fdinfo_gpu_revocable,
     "The fdinfo of a revocable dma-buf shows the exporter gdmabuf-gpu-revocable.")
{
	expect_gpu(GDMABUF_REVOCABLE, "gdmabuf-gpu-revocable");
}
