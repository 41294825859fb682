/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports of host memory by the kernel's udmabuf: in a guest, without the kernel module gdmabuf.
 * tests/import/test_udmabuf.c has the errors, on a fake.
 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MB ((size_t)1 << 20)

static void udmabuf_only(void)
{
	int fd = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		test_skip("/dev/udmabuf cannot be opened");
	close(fd);
	if (!access("/dev/gdmabuf", F_OK))
		test_skip("/dev/gdmabuf is there");
}

/* The dma-buf's memory, mapped by the kernel's exporter. */
static unsigned char *udmabuf_view(const struct climport_dmabuf *d)
{
	void *p = mmap(NULL, d->whole, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

static struct climport_dmabuf udmabuf_export_memory(const void *address, size_t size)
{
	struct climport_dmabuf d = { .fd = -1 };
	int ret = climport_export_dmabuf(address, size, CLIMPORT_KEEP, &d, sizeof(d));

	if (ret)
		printf("# %s\n", climport_last_error());
	EXPECT_EQ(ret, 0);
	EXPECT_EQ(d.whole, (size_t)lseek(d.fd, 0, SEEK_END));
	EXPECT(d.offset + d.size <= d.whole);
	return d;
}

/* Both see the other's bytes at the place. */
static void udmabuf_expect_same(const struct climport_dmabuf *d, unsigned char *memory)
{
	unsigned char *view = udmabuf_view(d);

	memory[0] = 21;
	EXPECT_EQ(view[d->offset], 21);
	view[d->offset + d->size - 1] = 22;
	EXPECT_EQ(memory[d->size - 1], 22);
	munmap(view, d->whole);
}

static const struct size_row {
	const char *name;
	size_t size;
} sizes[] = { { "1", 1 }, { "5000", 5000 }, { "1mb", MB }, { "64mb", 64 * MB } };

TEST_EACH(allocated, struct size_row, sizes,
	  "Memory of climport_alloc() is exported by udmabuf without the module, without a copy.")
{
	struct climport_dmabuf d;
	void *before, *p;

	udmabuf_only();
	fixture_begin();
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 1, 0, NULL, &before), 0);
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, row->size, 0, NULL, &p), 0);
	d = udmabuf_export_memory(p, row->size);
	udmabuf_expect_same(&d, p);
	close(d.fd);
	climport_free(p);
	climport_free(before);
	fixture_end();
}

LIB_TEST(outlives, "A dma-buf keeps the bytes of memory that was freed.")
{
	struct climport_dmabuf d;
	unsigned char *view;
	void *p;

	udmabuf_only();
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 3 * MB, 0, NULL, &p), 0);
	d = udmabuf_export_memory(p, 3 * MB);
	memset(p, 9, 3 * MB);
	climport_free(p);
	view = udmabuf_view(&d);
	EXPECT_EQ(view[d.offset + 3 * MB - 1], 9);
	munmap(view, d.whole);
	close(d.fd);
}

LIB_TEST(memfd, "A memfd of the program's that is sealed against shrinking is exported.")
{
	int fd = memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct climport_dmabuf d;
	unsigned char *p;

	udmabuf_only();
	EXPECT(!ftruncate(fd, 8 * PAGE) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(p != MAP_FAILED);
	d = udmabuf_export_memory(p + 3 * PAGE + 8, 2 * PAGE);
	EXPECT_EQ(d.offset, 8);
	EXPECT_EQ(d.whole, 3 * PAGE);
	udmabuf_expect_same(&d, p + 3 * PAGE + 8);
	close(d.fd);
	munmap(p, 8 * PAGE);
	close(fd);
}

static int udmabuf_memory_error(void *address, size_t size)
{
	struct climport_dmabuf d = { .fd = -7 };
	int ret = climport_export_dmabuf(address, size, 0, &d, sizeof(d));

	EXPECT_EQ(d.fd, -7);
	return ret;
}

LIB_TEST(unsealed, "A memfd that can shrink is -ENXIO, and the sentence names the seal.")
{
	int fd = memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p;

	udmabuf_only();
	EXPECT(!ftruncate(fd, PAGE));
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT_EQ(udmabuf_memory_error(p, PAGE), -ENXIO);
	EXPECT(strstr(climport_last_error(), "F_SEAL_SHRINK"));
	munmap(p, PAGE);
	close(fd);
}

LIB_TEST(anonymous, "Anonymous memory is -ENXIO: the module is not loaded.")
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	udmabuf_only();
	EXPECT_EQ(udmabuf_memory_error(memory, PAGE), -ENXIO);
	EXPECT(strstr(climport_last_error(), "/dev/gdmabuf"));
	munmap(memory, PAGE);
}

LIB_TEST(too_large, "More bytes than udmabuf's limit are -ENXIO, and the sentence names the limit.")
{
	void *p;

	udmabuf_only();
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 66 * MB, 0, NULL, &p), 0);
	EXPECT_EQ(udmabuf_memory_error(p, 66 * MB), -ENXIO);
	EXPECT(strstr(climport_last_error(), "size_limit_mb"));
	climport_free(p);
}
