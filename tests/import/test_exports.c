/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "import/export/exports.h"
#include "import/nvidia/cuda/cuda.h"
#include "util/log.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static int exports_create_file(void)
{
	int fd = memfd_create("dma-buf", MFD_CLOEXEC);

	EXPECT(fd >= 0);
	return fd;
}

static struct exported exports_describe(uintptr_t p, uintptr_t before)
{
	return (struct exported){ p - before, .buffer_id = cuda_buffer_id(p), .inside = p };
}

static int exports_find_address(int fd)
{
	uintptr_t address = 1;
	int ret = exports_find(fd, &address);

	EXPECT(!ret || address == 1);
	return ret;
}

TEST(found, "A dma-buf is found by any descriptor of it, with the address of its first byte.")
{
	uintptr_t p, address = 0;
	struct exported e;
	int fd = exports_create_file(), other;

	fake_cuda_reset(1);
	p = fake_cuda_alloc(0, 1000);
	e = exports_describe(p, 512);
	EXPECT_EQ(exports_add(fd, &e, NULL), 0);
	other = dup(fd);
	close(fd);
	EXPECT_EQ(exports_find(other, &address), 0);
	EXPECT_EQ(address, p - 512);
	close(other);
	fake_cuda_free(p);
}

TEST(unknown, "-ENOENT for others, -EBADF for none.")
{
	int fd = exports_create_file();

	EXPECT_EQ(exports_find_address(fd), -ENOENT);
	close(fd);
	EXPECT_EQ(exports_find_address(fd), -EBADF);
	EXPECT_EQ(exports_add(-1, &(struct exported){ .buffer_id = 1 }, NULL), -EBADF);
}

TEST(freed,
     "-ENODEV, with a sentence, once the memory was freed, also if the address is used again.")
{
	struct exported e;
	int fd = exports_create_file();
	uintptr_t p;

	fake_cuda_reset(1);
	p = fake_cuda_alloc(0, 8192);
	e = exports_describe(p, 0);
	EXPECT_EQ(exports_add(fd, &e, NULL), 0);
	fake_cuda_free(p);
	EXPECT_EQ(exports_find_address(fd), -ENODEV);
	EXPECT(strstr(log_last(), "was freed"));
	EXPECT_EQ(fake_cuda_alloc_at(0, 8192, p), p);
	EXPECT_EQ(exports_find_address(fd), -ENODEV);
	e = exports_describe(p, 0);
	EXPECT_EQ(exports_add(fd, &e, NULL), 0);
	EXPECT_EQ(exports_find_address(fd), 0);
	fake_cuda_free(p);
	close(fd);
}

TEST(not_to_be_told, "Memory that cannot be told from other memory is not remembered.")
{
	const struct exported e = { .address = 4096 };
	int fd = exports_create_file();

	EXPECT_EQ(exports_add(fd, &e, NULL), 0);
	EXPECT_EQ(exports_find_address(fd), -ENOENT);
	close(fd);
}

TEST(last_ones, "The last EXPORTS dma-bufs are remembered; one that is made again counts once.")
{
	int first, second, fd;
	struct exported e;
	uintptr_t p;

	fake_cuda_reset(1);
	p = fake_cuda_alloc(0, 8192);
	e = exports_describe(p, 0);
	first = exports_create_file();
	second = exports_create_file();
	exports_add(first, &e, NULL);
	exports_add(second, &e, NULL);
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(exports_add(second, &e, NULL), 0);
	for (int i = 0; i < EXPORTS - 2; i++) {
		fd = exports_create_file();
		EXPECT_EQ(exports_add(fd, &e, NULL), 0);
		EXPECT_EQ(exports_find_address(fd), 0);
		close(fd);
	}
	EXPECT_EQ(exports_find_address(first), 0);
	fd = exports_create_file();
	EXPECT_EQ(exports_add(fd, &e, NULL), 0);
	EXPECT_EQ(exports_find_address(first), -ENOENT);
	EXPECT_EQ(exports_find_address(second), 0);
	EXPECT_EQ(exports_find_address(fd), 0);
	for (int i = 0; i < EXPORTS; i++) {
		close(fd);
		fd = exports_create_file();
		EXPECT_EQ(exports_add(fd, &e, NULL), 0);
	}
	EXPECT_EQ(exports_find_address(second), -ENOENT);
	EXPECT_EQ(exports_find_address(fd), 0);
	close(fd);
	close(first);
	close(second);
	fake_cuda_free(p);
}
