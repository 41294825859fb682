/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_dmabuf.h"
#include "harness.h"
#include "process.h"
#include "import/import.h"
#include "util/log.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define BOTH (IMPORT_READ | IMPORT_WRITE)

static int dmabuf_get_region(int fd, size_t size, unsigned int access,
			     struct import_region **region)
{
	const struct import_desc desc = { IMPORT_DMABUF, &fd, size, access, false, 0 };

	*region = NULL;
	return import_get(&desc, region);
}

TEST(mapped, "A dma-buf is mapped, and the caller still owns the descriptor.")
{
	int fd = fake_dmabuf_open(4 * PAGE, O_RDWR);
	struct import_region *r;
	char *other = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	EXPECT_EQ(dmabuf_get_region(fd, 3 * PAGE, BOTH, &r), 0);
	EXPECT(r->fd != fd);
	EXPECT_EQ(fcntl(r->fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	other[PAGE] = 42;
	EXPECT_EQ(((char *)r->addr)[PAGE], 42);
	import_put(r);
	munmap(other, 4 * PAGE);
}

/* The lowest free descriptor, after a first import has opened the descriptors it keeps. */
static int next_descriptor(int fd)
{
	struct import_region *r;
	int next;

	EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), 0);
	import_put(r);
	next = dup(0);
	close(next);
	return next;
}

TEST(nothing_left, "A thousand imports leave no descriptor and no mapping behind.")
{
	int fd = fake_dmabuf_open(PAGE, O_RDWR), before = next_descriptor(fd);
	int after, mappings = process_count_mappings("");
	struct import_region *r;

	for (int i = 0; i < 1000; i++) {
		EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), 0);
		import_put(r);
		EXPECT_EQ(dmabuf_get_region(fd, PAGE + 1, BOTH, &r), -ERANGE);
	}
	after = dup(0);
	close(after);
	EXPECT_EQ(after, before);
	EXPECT(process_count_mappings("") < mappings + 50);
	close(fd);
}

TEST(read_only, "A read-only descriptor takes precedence over flags that ask for more.")
{
	int fd = fake_dmabuf_open(PAGE, O_RDONLY);
	struct import_region *r;

	EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), 0);
	EXPECT_EQ(r->access, IMPORT_READ);
	EXPECT(!strcmp(r->read_only,
		       "its descriptor is O_RDONLY, and has to be O_RDWR for writers"));
	import_put(r);
	close(fd);
}

TEST(read_only_for_writing_alone,
     "A read-only descriptor is refused if only writing is asked for, and nothing stays held.")
{
	int fd = fake_dmabuf_open(PAGE, O_RDONLY), next = next_descriptor(fd);
	int mappings = process_count_mappings("");
	struct import_region *r;

	EXPECT_EQ(dmabuf_get_region(fd, PAGE, IMPORT_WRITE, &r), -EACCES);
	EXPECT(!strcmp(log_last(), "the import is write-only, and the dma-buf read-only: "
				   "its descriptor is O_RDONLY, and has to be O_RDWR for writers"));
	EXPECT_EQ(fcntl(next, F_GETFD), -1);
	EXPECT_EQ(process_count_mappings(""), mappings);
	close(fd);
}

static const struct exporter_row {
	const char *name;
	int error;
} exporter_rows[] = { { "eacces", EACCES }, { "eperm", EPERM }, { "einval", EINVAL } };

TEST_EACH(
	exporter_refuses_writers, struct exporter_row, exporter_rows,
	"If the exporter maps a dma-buf for reading alone, the dma-buf is read-only, whatever the "
	"descriptor's mode is.")
{
	int fd = fake_dmabuf_open(PAGE, O_RDWR);
	struct import_region *r;

	fake_dmabuf.mmap_write_error = row->error;
	EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), 0);
	EXPECT_EQ(r->access, IMPORT_READ);
	EXPECT_EQ(r->kinds, 1u << IMPORT_OF_DMABUF | 1u << IMPORT_UNWRITABLE);
	EXPECT(!strcmp(r->read_only, "its exporter lets nobody map it for writing"));
	import_put(r);
	EXPECT_EQ(dmabuf_get_region(fd, PAGE, IMPORT_WRITE, &r), -EACCES);
	fake_dmabuf.mmap_write_error = 0;
	close(fd);
}

TEST(write_only, "A write-only descriptor is refused, also where the CPU needs no mapping.")
{
	int fd = fake_dmabuf_open(PAGE, O_WRONLY);
	const struct import_desc desc = { IMPORT_DMABUF, &fd, PAGE, BOTH, true, 0 };
	struct import_region *r;

	EXPECT_EQ(import_get(&desc, &r), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "is O_WRONLY"));
	close(fd);
}

TEST(not_a_dmabuf, "A descriptor of any other file is an error that names the file.")
{
	struct import_region *r;
	int fds[2];

	EXPECT_EQ(pipe(fds), 0);
	EXPECT_EQ(dmabuf_get_region(fds[0], PAGE, BOTH, &r), -EBADF);
	EXPECT(strstr(log_last(), "is not a dma-buf"));
	close(fds[0]);
	close(fds[1]);
	EXPECT_EQ(dmabuf_get_region(fds[0], PAGE, BOTH, &r), -EBADF);
	EXPECT_EQ(dmabuf_get_region(-1, PAGE, BOTH, &r), -EBADF);
}

TEST(by_value, "A descriptor that is passed by value is an error, not a crash.")
{
	const struct import_desc desc = {
		IMPORT_DMABUF, (void *)(intptr_t)5, PAGE, BOTH, false, 0
	};
	struct import_region *r;

	EXPECT_EQ(import_get(&desc, &r), -EBADF);
	EXPECT(strstr(log_last(), "address of an int"));
}

TEST(no_cpu_mapping,
     "A dma-buf without mmap is refused, and the duplicate of the descriptor is closed.")
{
	int fd = fake_dmabuf_open(PAGE, O_RDWR), next = next_descriptor(fd);
	struct import_region *r;

	fake_dmabuf.mmap_error = ENODEV;
	EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), -EOPNOTSUPP);
	fake_dmabuf.mmap_error = ENOMEM;
	EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), -ENOMEM);
	fake_dmabuf.mmap_error = 0;
	EXPECT_EQ(fcntl(next, F_GETFD), -1);
	close(fd);
}

TEST(sync_flags, "A bracket passes the direction of the access to the kernel, and reads what is "
		 "written.  What was "
		 "written before goes to memory in front of START, of which an error is none.")
{
	int fd = fake_dmabuf_open(PAGE, O_RDWR), cleans = fake_dmabuf.cleans;
	struct import_region *r;

	EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), 0);
	EXPECT_EQ(import_needs_bracket(r), 1);
	EXPECT_EQ(import_sync(r, IMPORT_READ, IMPORT_BEGIN), 0);
	EXPECT_EQ(fake_dmabuf.last_flags, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ);
	EXPECT_EQ(fake_dmabuf.cleans, cleans + 1);
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_END), 0);
	EXPECT_EQ(fake_dmabuf.last_flags, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW);
	EXPECT_EQ(import_sync(r, IMPORT_WRITE, IMPORT_BEGIN), 0);
	EXPECT_EQ(fake_dmabuf.last_flags, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW);
	EXPECT_EQ(import_sync(r, IMPORT_WRITE, IMPORT_END), 0);
	import_put(r);
	close(fd);
}

TEST(sync_read_only, "START and END of a read-only descriptor never pass the direction write.")
{
	int fd = fake_dmabuf_open(PAGE, O_RDONLY);
	struct import_region *r;

	EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), 0);
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_BEGIN), 0);
	EXPECT_EQ(fake_dmabuf.last_flags, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ);
	EXPECT_EQ(import_sync(r, IMPORT_WRITE, IMPORT_END), 0);
	EXPECT_EQ(fake_dmabuf.last_flags, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ);
	import_put(r);
	close(fd);
}

TEST(sync_interrupted, "If a signal interrupts DMA_BUF_IOCTL_SYNC, the ioctl is repeated.")
{
	int fd = fake_dmabuf_open(PAGE, O_RDWR), starts = fake_dmabuf.starts;
	struct import_region *r;

	EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), 0);
	fake_dmabuf.interrupts = 3;
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_BEGIN), 0);
	EXPECT_EQ(fake_dmabuf.starts, starts + 1);
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_END), 0);
	fake_dmabuf.error = EIO;
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_BEGIN), -EIO);
	fake_dmabuf.error = 0;
	import_put(r);
	close(fd);
}

TEST(closed, "If the program closed the descriptor, a new file with the number stays open.")
{
	int fd = fake_dmabuf_open(4096, O_RDWR), own, other;
	struct import_desc desc = { IMPORT_DMABUF, &fd, 4096, IMPORT_READ, false, 0 };
	struct import_region *r = NULL;

	EXPECT_EQ(import_get(&desc, &r), 0);
	own = r->fd;
	close(own);
	other = fcntl(0, F_DUPFD_CLOEXEC, own);
	EXPECT_EQ(other, own);
	import_put(r);
	EXPECT_EQ(close(other), 0);
	close(fd);
}

TEST(end_without_start,
     "Access that has not begun is not ended; access whose end failed is ended later.")
{
	int fd = fake_dmabuf_open(PAGE, O_RDWR), ends = fake_dmabuf.ends;
	struct import_region *r;

	EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), 0);
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_END), 0);
	EXPECT_EQ(fake_dmabuf.ends, ends);
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_BEGIN), 0);
	fake_dmabuf.error = EIO;
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_END), -EIO);
	fake_dmabuf.error = 0;
	ends = fake_dmabuf.ends;
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_END), 0);
	EXPECT_EQ(fake_dmabuf.ends, ends + 1);
	import_put(r);
	close(fd);
}

TEST(closed_access, "If the program closed the descriptor, an access is an error without an ioctl.")
{
	int fd = fake_dmabuf_open(PAGE, O_RDWR), other = fake_dmabuf_open(PAGE, O_RDWR);
	int starts = fake_dmabuf.starts, ends = fake_dmabuf.ends, own;
	struct import_region *r;

	EXPECT_EQ(dmabuf_get_region(fd, PAGE, BOTH, &r), 0);
	EXPECT_EQ(import_check_access(r), 0);
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_BEGIN), 0);
	own = r->fd;
	close(own);
	EXPECT_EQ(import_check_access(r), -EIO);
	EXPECT_EQ(fcntl(other, F_DUPFD_CLOEXEC, own), own);
	EXPECT_EQ(import_check_access(r), -EIO);
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_BEGIN), -EIO);
	EXPECT(strstr(log_last(), "the program closed descriptor"));
	EXPECT_EQ(import_sync(r, BOTH, IMPORT_END), -EIO);
	EXPECT_EQ(fake_dmabuf.starts, starts + 1);
	EXPECT_EQ(fake_dmabuf.ends, ends);
	import_put(r);
	close(own);
	close(other);
	close(fd);
}
