/* SPDX-License-Identifier: Apache-2.0 */
/* Names of real exporters, by which NVIDIA's devices are given dma-bufs of the host's memory. */
#include "camera.h"
#include "harness.h"
#include "producer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdbool.h>
#include <unistd.h>

#include "import/nvidia/rm/rm_dmabuf.h"

enum { SIZE = 64 * 1024 };

/* Prints the name for the log of the test. */
static void exporter_print(int fd)
{
	char path[48], line[128];
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof(line), info))
		if (!strncmp(line, "exp_name", 8))
			printf("# %s", line);
	if (info)
		fclose(info);
}

static const struct exporter_row {
	const char *name, *producer;
	int result;
} exporters[] = {
	{ "udmabuf", "udmabuf", 0 },
	{ "heap", "dma-heap", 0 },
	{ "gdmabuf", "gdmabuf", 0 },
	{ "vgem", "vgem", -EOPNOTSUPP },
	{ "virtio_gpu", "virtio-gpu", -EOPNOTSUPP },
};

TEST_EACH(exporter, struct exporter_row, exporters,
	  "The exporters of host memory are known by name; DRM's name is the same for memory of "
	  "GPUs, so DRM's dma-bufs are refused.")
{
	const struct producer *p = producer_find(row->producer);
	char why[160];
	int fd;

	EXPECT(p);
	if (producer_check(p, O_RDWR, why, sizeof(why)))
		test_skip("%s", why);
	fd = producer_create(p, SIZE, O_RDWR);
	EXPECT(fd >= 0);
	exporter_print(fd);
	EXPECT_EQ(rm_dmabuf_check(fd, SIZE), row->result);
	close(fd);
}

static const struct camera_row {
	const char *name, *path;
} cameras[] = { { "0", "/dev/video0" }, { "1", "/dev/video1" } };

TEST_EACH(camera, struct camera_row, cameras,
	  "The buffers of V4L2's allocators are known as host memory.")
{
	enum { BUFFERS = 4 };
	struct camera camera;
	int fd[BUFFERS];

	if (camera_open(&camera, row->path))
		test_skip("%s", camera.message);
	EXPECT_EQ(camera_set_format(&camera, 320, 180, V4L2_PIX_FMT_YUYV), 0);
	EXPECT_EQ(camera_export(&camera, BUFFERS, O_RDWR, fd), 0);
	exporter_print(fd[0]);
	EXPECT_EQ(rm_dmabuf_check(fd[0], camera.frame_size), 0);
	for (int i = 0; i < BUFFERS; i++)
		close(fd[i]);
	camera_close(&camera);
}
