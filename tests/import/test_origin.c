/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "import/export/origin.h"
#include "import/nvidia/cuda/cuda.h"
#include "util/log.h"

#include <errno.h>
#include <fake_cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static int origin_create_file(void)
{
	int fd = memfd_create("dma-buf", MFD_CLOEXEC);

	EXPECT(fd >= 0);
	return fd;
}

static void origin_add_file(int fd, const struct origin *origin)
{
	struct descriptor_id id;

	EXPECT_EQ(descriptor_identify(fd, &id), 0);
	origin_add(&id, origin);
}

static struct origin origin_describe(uintptr_t p, uintptr_t before)
{
	return (struct origin){ p - before, .buffer_id = cuda_buffer_id(p), .inside = p };
}

static int origin_find_address(int fd)
{
	struct descriptor_id id;
	uintptr_t address = 1;
	int ret;

	EXPECT_EQ(descriptor_identify(fd, &id), 0);
	ret = origin_find(&id, &address);
	EXPECT(!ret || address == 1);
	return ret;
}

TEST(found, "Every descriptor of a dma-buf finds the dma-buf, with the address of the first byte.")
{
	uintptr_t p, address = 0;
	struct descriptor_id id;
	struct origin e;
	int fd = origin_create_file(), other;

	fake_cuda_reset(1);
	p = fake_cuda_alloc(0, 1000);
	e = origin_describe(p, 512);
	origin_add_file(fd, &e);
	other = dup(fd);
	close(fd);
	EXPECT_EQ(descriptor_identify(other, &id), 0);
	EXPECT_EQ(origin_find(&id, &address), 0);
	EXPECT_EQ(address, p - 512);
	close(other);
	fake_cuda_free(p);
}

TEST(unknown, "An unknown file is -ENOENT.")
{
	int fd = origin_create_file();

	EXPECT_EQ(origin_find_address(fd), -ENOENT);
	close(fd);
}

TEST(freed,
     "After a free the dma-buf is -ENODEV, with a message, even if the address is used again.")
{
	struct origin e;
	int fd = origin_create_file();
	uintptr_t p;

	fake_cuda_reset(1);
	p = fake_cuda_alloc(0, 8192);
	e = origin_describe(p, 0);
	origin_add_file(fd, &e);
	fake_cuda_free(p);
	EXPECT_EQ(origin_find_address(fd), -ENODEV);
	EXPECT(strstr(log_last(), "was freed"));
	EXPECT_EQ(fake_cuda_alloc_at(0, 8192, p), p);
	EXPECT_EQ(origin_find_address(fd), -ENODEV);
	e = origin_describe(p, 0);
	origin_add_file(fd, &e);
	EXPECT_EQ(origin_find_address(fd), 0);
	fake_cuda_free(p);
	close(fd);
}

TEST(not_to_be_told,
     "Memory that cannot be distinguished from later memory at the address is not remembered.")
{
	const struct origin e = { .address = 4096 };
	int fd = origin_create_file();

	origin_add_file(fd, &e);
	EXPECT_EQ(origin_find_address(fd), -ENOENT);
	close(fd);
}

TEST(last_ones, "The last ORIGINS dma-bufs are remembered, and a repeated dma-buf counts once.")
{
	int first, second, fd;
	struct origin e;
	uintptr_t p;

	fake_cuda_reset(1);
	p = fake_cuda_alloc(0, 8192);
	e = origin_describe(p, 0);
	first = origin_create_file();
	second = origin_create_file();
	origin_add_file(first, &e);
	origin_add_file(second, &e);
	for (int i = 0; i < 100; i++)
		origin_add_file(second, &e);
	for (int i = 0; i < ORIGINS - 2; i++) {
		fd = origin_create_file();
		origin_add_file(fd, &e);
		EXPECT_EQ(origin_find_address(fd), 0);
		close(fd);
	}
	EXPECT_EQ(origin_find_address(first), 0);
	fd = origin_create_file();
	origin_add_file(fd, &e);
	EXPECT_EQ(origin_find_address(first), -ENOENT);
	EXPECT_EQ(origin_find_address(second), 0);
	EXPECT_EQ(origin_find_address(fd), 0);
	for (int i = 0; i < ORIGINS; i++) {
		close(fd);
		fd = origin_create_file();
		origin_add_file(fd, &e);
	}
	EXPECT_EQ(origin_find_address(second), -ENOENT);
	EXPECT_EQ(origin_find_address(fd), 0);
	close(fd);
	close(first);
	close(second);
	fake_cuda_free(p);
}
