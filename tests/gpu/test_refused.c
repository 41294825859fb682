/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refused imports.  Each test expects the exact error, and a good import afterwards, because a
 * refusal makes the VkDevice unusable.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "gpu.h"

/* A mapped page and an unmapped page, at an address that the kernel never chooses. */
static char *half_mapped(void)
{
	const uintptr_t far = (uintptr_t)0x6f00 << 32;
	char *p = mmap((void *)far, 2 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	EXPECT(p != MAP_FAILED);
	EXPECT_EQ(munmap(p + PAGE, PAGE), 0);
	return p;
}

TEST(refused_not_mapped, "Memory that is not mapped, wholly or in part, is refused.")
{
	char *p;

	gpu_session_open(&ours);
	p = half_mapped();
	EXPECT_EQ(gpu_import_error(0, NULL, p, 2 * PAGE), CL_INVALID_OPERATION);
	EXPECT(gpu_notice_has("is not mapped"));
	gpu_import_good();
	munmap(p, PAGE);
	EXPECT_EQ(gpu_import_error(0, NULL, p, PAGE), CL_INVALID_OPERATION);
	EXPECT(gpu_notice_has("is not mapped"));
	gpu_import_good();
	gpu_session_close(&ours);
}

TEST(refused_file, "A shared mapping of a file is refused.")
{
	char *p, *name;
	struct statfs fs;
	int fd;

	if (!gpu.is_opaque)
		test_skip("this device can use mappings of files");
	gpu_session_open(&ours);
	EXPECT(asprintf(&name, "%s/climport-test-XXXXXX", getenv("DISK") ? getenv("DISK") : ".") >
	       0);
	fd = mkstemp(name);
	EXPECT(fd >= 0);
	unlink(name);
	free(name);
	EXPECT_EQ(fstatfs(fd, &fs), 0);
	if (fs.f_type == TMPFS_MAGIC)
		test_skip("the directory DISK is in memory");
	EXPECT_EQ(ftruncate(fd, (off_t)PAGE), 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(p != MAP_FAILED);
	p[0] = 1;
	EXPECT_EQ(gpu_import_error(0, NULL, p, PAGE), CL_INVALID_OPERATION);
	EXPECT(gpu_notice_has("cannot pin"));
	gpu_import_good();
	munmap(p, PAGE);
	close(fd);
	gpu_session_close(&ours);
}

TEST(refused_read_only, "A read-only mapping is refused.")
{
	void *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	gpu_session_open(&ours);
	EXPECT_EQ(gpu_import_error(0, NULL, p, PAGE), CL_INVALID_OPERATION);
	EXPECT(gpu_notice_has("without write access"));
	gpu_import_good();
	if (gpu.is_opaque) {
		EXPECT_EQ(gpu_import_error(CL_MEM_READ_ONLY, NULL, p, PAGE), CL_INVALID_OPERATION);
		EXPECT(gpu_notice_has("without write access"));
		gpu_import_good();
	}
	munmap(p, PAGE);
	gpu_session_close(&ours);
}

TEST(refused_no_memory, "NULL, a size of 0 and a size beyond the address space are refused.")
{
	char *p = half_mapped();

	gpu_session_open(&ours);
	EXPECT_EQ(gpu_import_error(0, NULL, NULL, PAGE), CL_INVALID_VALUE);
	EXPECT_EQ(gpu_import_error(0, NULL, p, 0), CL_INVALID_BUFFER_SIZE);
	EXPECT_EQ(gpu_import_error(0, NULL, p, SIZE_MAX), CL_INVALID_BUFFER_SIZE);
	EXPECT_EQ(gpu_import_error(0, NULL, p, SIZE_MAX / 4), CL_INVALID_OPERATION);
	gpu_import_good();
	munmap(p, PAGE);
	gpu_session_close(&ours);
}

TEST(refused_unaligned, "An address with less alignment than the device's is refused.")
{
	struct host h;
	char want[64];

	if (!gpu.is_opaque)
		test_skip("this device takes any alignment");
	gpu_session_open(&ours);
	host_alloc(&h, HOST_MMAP, PAGE);
	snprintf(want, sizeof(want), "multiples of %zu bytes", gpu.align);
	EXPECT_EQ(gpu_import_error(0, NULL, (char *)h.memory + 1, 100), CL_INVALID_OPERATION);
	EXPECT(gpu_notice_has(want));
	EXPECT_EQ(gpu_import_error(0, NULL, (char *)h.memory + gpu.align / 2, 100),
		  CL_INVALID_OPERATION);
	EXPECT(gpu_notice_has(want));
	gpu_import_good();
	host_free(&h);
	gpu_session_close(&ours);
}

static int descriptor_create_none(void)
{
	return -1;
}

static int descriptor_create_memfd(void)
{
	return memfd_create("climport-test", MFD_CLOEXEC);
}

static int descriptor_create_pipe(void)
{
	int fds[2];

	EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0);
	close(fds[1]);
	return fds[0];
}

static const struct descriptor {
	const char *name;
	int (*create)(void);
} descriptors[] = {
	{ "none", descriptor_create_none },
	{ "memfd", descriptor_create_memfd },
	{ "pipe", descriptor_create_pipe },
};

TEST_EACH(refused_descriptors, struct descriptor, descriptors,
	  "A descriptor of anything but a dma-buf is refused.")
{
	const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						     0 };
	int fd = row->create();

	gpu_session_open(&ours);
	EXPECT_EQ(gpu_import_error(0, dma_buf, &fd, PAGE), CL_INVALID_VALUE);
	gpu_import_good();
	if (fd >= 0)
		close(fd);
	gpu_session_close(&ours);
}
