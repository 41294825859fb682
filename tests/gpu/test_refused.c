/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot be imported: the exact error, and that a good import works right after it.  A
 * refused import spoils the VkDevice that refused it.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "gpu.h"

/* Two pages of which the second is not mapped, where the kernel puts nothing by itself. */
static char *half_mapped(void)
{
	const uintptr_t far = (uintptr_t)0x6f00 << 32;
	char *p = mmap((void *)far, 2 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	EXPECT(p != MAP_FAILED);
	EXPECT_EQ(munmap(p + PAGE, PAGE), 0);
	return p;
}

TEST(refused_not_mapped, "Memory that is not mapped, all of it or a part.")
{
	char *p;

	session_open(&ours);
	p = half_mapped();
	EXPECT_EQ(refused(0, NULL, p, 2 * PAGE), CL_INVALID_OPERATION);
	EXPECT(because("is not mapped"));
	good_import();
	munmap(p, PAGE);
	EXPECT_EQ(refused(0, NULL, p, PAGE), CL_INVALID_OPERATION);
	EXPECT(because("is not mapped"));
	good_import();
	session_close(&ours);
}

TEST(refused_file, "A mapping of a file, shared or private.")
{
	const int flags[] = { MAP_SHARED, MAP_PRIVATE };
	char *p, *name;
	struct statfs fs;
	int fd;

	if (!gpu.is_opaque)
		test_skip("this device can use mappings of files");
	session_open(&ours);
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
	for (int i = 0; i < 2; i++) {
		p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags[i], fd, 0);
		EXPECT(p != MAP_FAILED);
		p[0] = 1;
		EXPECT_EQ(refused(0, NULL, p, PAGE), CL_INVALID_OPERATION);
		EXPECT(because("cannot pin"));
		good_import();
		munmap(p, PAGE);
	}
	close(fd);
	session_close(&ours);
}

TEST(refused_read_only, "A mapping that is read-only.")
{
	void *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	session_open(&ours);
	EXPECT_EQ(refused(0, NULL, p, PAGE), CL_INVALID_OPERATION);
	EXPECT(because("without write access"));
	good_import();
	if (gpu.is_opaque) {
		EXPECT_EQ(refused(CL_MEM_READ_ONLY, NULL, p, PAGE), CL_INVALID_OPERATION);
		EXPECT(because("without write access"));
		good_import();
	}
	munmap(p, PAGE);
	session_close(&ours);
}

TEST(refused_no_memory, "NULL, no bytes, more bytes than there are addresses.")
{
	char *p = half_mapped();

	session_open(&ours);
	EXPECT_EQ(refused(0, NULL, NULL, PAGE), CL_INVALID_VALUE);
	EXPECT_EQ(refused(0, NULL, p, 0), CL_INVALID_BUFFER_SIZE);
	EXPECT_EQ(refused(0, NULL, p, SIZE_MAX), CL_INVALID_BUFFER_SIZE);
	EXPECT_EQ(refused(0, NULL, p, SIZE_MAX / 4), CL_INVALID_OPERATION);
	good_import();
	munmap(p, PAGE);
	session_close(&ours);
}

TEST(refused_unaligned, "An address of finer alignment than the device's.")
{
	struct host h;
	char want[64];

	if (!gpu.is_opaque)
		test_skip("this device takes any alignment");
	session_open(&ours);
	host_alloc(&h, HOST_MMAP, PAGE);
	snprintf(want, sizeof(want), "multiples of %zu bytes", gpu.align);
	EXPECT_EQ(refused(0, NULL, (char *)h.memory + 1, 100), CL_INVALID_OPERATION);
	EXPECT(because(want));
	EXPECT_EQ(refused(0, NULL, (char *)h.memory + gpu.align / 2, 100), CL_INVALID_OPERATION);
	EXPECT(because(want));
	good_import();
	host_free(&h);
	session_close(&ours);
}

TEST(refused_descriptors, "Descriptors that are no dma-bufs: none, a memfd, a pipe.")
{
	const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						     0 };
	int fds[4] = { -1, memfd_create("climport-test", MFD_CLOEXEC), -1, -1 };

	session_open(&ours);
	EXPECT_EQ(pipe2(fds + 2, O_CLOEXEC), 0);
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(refused(0, dma_buf, &fds[i], PAGE), CL_INVALID_VALUE);
		good_import();
	}
	for (int i = 1; i < 4; i++)
		close(fds[i]);
	session_close(&ours);
}
