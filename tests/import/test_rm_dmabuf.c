/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of dma-bufs by NVIDIA's resource manager: exporters by their names. */
#include "rm_fixture.h"

#include <fcntl.h>

#include "import/nvidia/rm/rm_refusal.h"

static int rm_dmabuf(size_t size)
{
	int fd = memfd_create("fake-dmabuf-frame", MFD_CLOEXEC);

	EXPECT(fd >= 0);
	EXPECT_EQ(ftruncate(fd, (off_t)size), 0);
	fake_rm.exporter = "udmabuf";
	return fd;
}

RM_TEST(dmabuf_import, "The descriptor of a dma-buf has the dma-buf's bytes, and the GPU does not "
		       "cache the bytes.")
{
	int dmabuf = rm_dmabuf(SIZE), fd;
	struct fake_opaque opaque;
	char byte = 5;

	EXPECT_EQ(rm_import_dmabuf(rm_uuid[0], dmabuf, SIZE, &fd), 0);
	EXPECT(fake_opaque_read(fd, &opaque));
	EXPECT_EQ(pwrite(dmabuf, &byte, 1, 100), 1);
	EXPECT_EQ(((char *)opaque.memory)[100], 5);
	EXPECT_EQ(opaque.size, SIZE);
	EXPECT(!opaque.cached);
	EXPECT_EQ(fake_rm_held().objects, 0);
	close(dmabuf);
	close(fd);
}

RM_TEST(dmabuf_part, "For a part of a dma-buf RM gets whole pages.")
{
	int dmabuf = rm_dmabuf(SIZE), fd;
	struct fake_opaque opaque;

	EXPECT_EQ(rm_import_dmabuf(rm_uuid[0], dmabuf, PAGE + 1, &fd), 0);
	EXPECT(fake_opaque_read(fd, &opaque));
	EXPECT_EQ(opaque.size, 2 * PAGE);
	close(dmabuf);
	close(fd);
}

RM_TEST(dmabuf_too_small, "A range beyond the end of the dma-buf, or without bytes, is -ERANGE.")
{
	int dmabuf = rm_dmabuf(SIZE), fd;

	EXPECT_EQ(rm_import_dmabuf(rm_uuid[0], dmabuf, SIZE + 1, &fd), -ERANGE);
	EXPECT_EQ(rm_import_dmabuf(rm_uuid[0], dmabuf, 0, &fd), -ERANGE);
	EXPECT_EQ(fake_rm.calls, 0);
	close(dmabuf);
}

RM_TEST(no_dmabuf, "A file that is no dma-buf, or no descriptor, is -EBADF.")
{
	int file = open("/dev/zero", O_RDWR), fd;

	EXPECT_EQ(rm_import_dmabuf(rm_uuid[0], file, PAGE, &fd), -EBADF);
	EXPECT_EQ(rm_import_dmabuf(rm_uuid[0], -1, PAGE, &fd), -EBADF);
	EXPECT_EQ(fake_rm.calls, 0);
	close(file);
}

static const struct rm_exporter {
	const char *name, *exporter;
	int result;
} rm_exporters[] = {
	{ "udmabuf", "udmabuf", 0 },
	{ "system", "system", 0 },
	{ "cma", "default_cma_region", 0 },
	{ "cma_of_the_tree", "linux,cma", 0 },
	{ "cma_of_the_command_line", "reserved", 0 },
	{ "vb2_vmalloc", "videobuf2_vmalloc", 0 },
	{ "vb2_contig", "videobuf2_dma_contig", 0 },
	{ "vb2_sg", "videobuf2_dma_sg", 0 },
	{ "gdmabuf_host", "gdmabuf-host", 0 },
	{ "drm", "drm", -EOPNOTSUPP },
	{ "gdmabuf_gpu", "gdmabuf", -EOPNOTSUPP },
	{ "nvidia", "nv_dmabuf", -EOPNOTSUPP },
	{ "amdgpu", "amdgpu", -EOPNOTSUPP },
	{ "vfio", "vfio_pci", -EOPNOTSUPP },
	{ "longer", "udmabufs", -EOPNOTSUPP },
};

TEST_EACH(exporter, struct rm_exporter, rm_exporters,
	  "The first pages of a dma-buf are imported if the exporter gives host memory only.")
{
	int dmabuf, fd = -1;

	rm_begin();
	dmabuf = rm_dmabuf(SIZE);
	fake_rm.exporter = row->exporter;
	EXPECT_EQ(rm_import_dmabuf(rm_uuid[0], dmabuf, SIZE, &fd), row->result);
	if (row->result) {
		EXPECT(strstr(log_last(), row->exporter));
		EXPECT(strstr(log_last(), RM_REFUSAL));
		EXPECT_EQ(fake_rm.calls, 0);
	} else {
		close(fd);
	}
	close(dmabuf);
	rm_end();
}

static const struct rm_refusal {
	const char *name;
	int error;
	uint32_t status;
	int result;
	const char *says;
} rm_refusals[] = {
	{ "not_supported", 0, 0x56, -EOPNOTSUPP, "not supported (status 0x56)" },
	{ "no_memory", 0, 0x51, -ENOMEM, "out of memory (status 0x51)" },
	{ "enotty", ENOTTY, 0, -EOPNOTSUPP,
	  "ioctl of NVIDIA's resource manager: Inappropriate ioctl for device" },
};

TEST_EACH(
	dmabuf_refused, struct rm_refusal, rm_refusals,
	"If RM refuses a dma-buf, nothing is left behind, and the error and the sentence tell the "
	"cause.")
{
	char says[128];
	int dmabuf, fd;

	rm_begin();
	rm_import_works(0);
	dmabuf = rm_dmabuf(SIZE);
	snprintf(says, sizeof(says), "%zu bytes of dma-buf %d", SIZE, dmabuf);
	rm_fail("attach", 1, row->error, row->status);
	EXPECT_EQ(rm_import_dmabuf(rm_uuid[0], dmabuf, SIZE, &fd), row->result);
	EXPECT(strstr(log_last(), says));
	EXPECT(strstr(log_last(), row->says));
	rm_expect_kept(1, 1);
	close(dmabuf);
	rm_end();
}
