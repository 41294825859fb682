/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real exporters and devices: the names by which NVIDIA's devices are given dma-bufs of the host's
 * memory, and mappings that no driver can pin.
 */
#include "camera.h"
#include "harness.h"
#include "producer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "import/import.h"
#include "import/nvidia/pinnable.h"
#include "import/nvidia/rm/rm.h"
#include "import/nvidia/rm/rm_refusal.h"
#include "import/opaque_fd/opaque_cache.h"
#include "process.h"
#include "util/log.h"

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

TEST(refused_import,
     "A real dma-buf of DRM is refused with the reason of `climport diag`, not with "
     "one about the CPU's mapping.")
{
	static const unsigned char uuid[IMPORT_UUID_SIZE];
	const struct producer *p = producer_find("vgem");
	struct import_desc desc = { .type = IMPORT_DMABUF,
				    .size = SIZE,
				    .access = IMPORT_READ | IMPORT_WRITE };
	struct import_region *region;
	struct import_opaque opaque;
	char why[160];
	int fd;

	EXPECT(p);
	if (producer_check(p, O_RDWR, why, sizeof(why)))
		test_skip("%s", why);
	fd = producer_create(p, SIZE, O_RDWR);
	desc.memory = &fd;
	EXPECT_EQ(import_get(&desc, &region), 0);
	close(fd);
	EXPECT(region->addr);
	EXPECT_EQ(import_opaque(region, uuid, &region->opaque, &opaque), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), RM_REFUSAL));
	import_put(region);
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

/* What get_user_pages() says of a page: 0 or an errno. */
static int exporter_pin(void *page)
{
	struct iovec bytes = { page, 1 };
	int fds[2], error;

	EXPECT_EQ(pipe(fds), 0);
	error = vmsplice(fds[1], &bytes, 1, 0) < 0 ? errno : 0;
	close(fds[0]);
	close(fds[1]);
	return error;
}

/* The page is refused before a driver is asked.  Prints what the kernel says of the mapping. */
static void exporter_expect_refused(char *page, size_t size)
{
	EXPECT(page != MAP_FAILED);
	page[0] = 1;
	printf("# VM_PFNMAP: %d, VM_IO: %d, get_user_pages(): %s\n", process_mapping_is(page, "pf"),
	       process_mapping_is(page, "io"), strerror(exporter_pin(page)));
	EXPECT_EQ(pinnable_check(page, size, PINNABLE_MEMORY | PINNABLE_COPIES), -EOPNOTSUPP);
	munmap(page, size);
}

TEST_EACH(mapping, struct exporter_row, exporters,
	  "The CPU's mapping of a dma-buf is refused as host memory, VM_PFNMAP or not.")
{
	const struct producer *p = producer_find(row->producer);
	char why[160];
	int fd;

	EXPECT(p);
	if (producer_check(p, O_RDWR, why, sizeof(why)))
		test_skip("%s", why);
	fd = producer_create(p, SIZE, O_RDWR);
	EXPECT(fd >= 0);
	exporter_expect_refused(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), SIZE);
	close(fd);
}

TEST_EACH(camera_mapping, struct camera_row, cameras,
	  "The CPU's mapping of a buffer of V4L2 is refused as host memory, of the dma-buf and of "
	  "the device.")
{
	struct v4l2_buffer buffer = { .type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
				      .memory = V4L2_MEMORY_MMAP };
	struct camera camera;
	int fd[2];

	if (camera_open(&camera, row->path))
		test_skip("%s", camera.message);
	EXPECT_EQ(camera_set_format(&camera, 320, 180, V4L2_PIX_FMT_YUYV), 0);
	EXPECT_EQ(camera_export(&camera, 2, O_RDWR, fd), 0);
	exporter_expect_refused(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd[0], 0),
				SIZE);
	EXPECT_EQ(ioctl(camera.fd, VIDIOC_QUERYBUF, &buffer), 0);
	exporter_expect_refused(
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, camera.fd, buffer.m.offset),
		SIZE);
	for (int i = 0; i < 2; i++)
		close(fd[i]);
	camera_close(&camera);
}

static const struct device_row {
	const char *name, *path;
	bool is_unlinked;
} devices[] = {
	{ "node", "/dev/climport-test-mem", false },
	{ "unlinked", "/dev/climport-test-mem", true },
	{ "in_tmpfs", "/dev/shm/climport-test-mem", false },
	{ "unlinked_in_tmpfs", "/dev/shm/climport-test-mem", true },
};

/* /dev/mem, at the BIOS, which any kernel lets root map. */
TEST_EACH(device, struct device_row, devices,
	  "A VM_PFNMAP mapping of a device is refused, whatever is left of the device's node.")
{
	char *page;
	int fd;

	unlink(row->path);
	mkdir("/dev/shm", 0777);
	if (mknod(row->path, S_IFCHR | 0600, makedev(1, 1)))
		test_skip("mknod: %s", strerror(errno));
	fd = open(row->path, O_RDWR);
	if (fd < 0)
		test_skip("open: %s", strerror(errno));
	if (row->is_unlinked)
		EXPECT_EQ(unlink(row->path), 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0xf0000);
	close(fd);
	EXPECT(page != MAP_FAILED);
	EXPECT(process_mapping_is(page, "pf"));
	exporter_expect_refused(page, 4096);
	unlink(row->path);
}
