/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"

#include "guest_cl.h"
#include "harness.h"
#include "process.h"
#include "producer.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/random.h>

struct view view_open(int fd, size_t size, int access)
{
	struct view view = { fd, access, size, NULL };

	view.bytes = mmap(NULL, size, access == O_RDWR ? PROT_READ | PROT_WRITE : PROT_READ,
			  MAP_SHARED, fd, 0);
	EXPECT(view.bytes != MAP_FAILED);
	return view;
}

void view_close(struct view *view)
{
	EXPECT_EQ(munmap(view->bytes, view->size), 0);
}

void view_write(struct view *view, const void *bytes, size_t size)
{
	EXPECT_EQ(producer_cpu_begin(view->fd, O_WRONLY), 0);
	memcpy(view->bytes, bytes, size);
	EXPECT_EQ(producer_cpu_end(view->fd, O_WRONLY), 0);
}

void view_read(struct view *view, void *bytes, size_t size)
{
	EXPECT_EQ(producer_cpu_begin(view->fd, O_RDONLY), 0);
	memcpy(bytes, view->bytes, size);
	EXPECT_EQ(producer_cpu_end(view->fd, O_RDONLY), 0);
}

unsigned char *bytes_zero(size_t size)
{
	unsigned char *bytes = calloc(1, size);

	EXPECT(bytes);
	return bytes;
}

unsigned char *bytes_random(size_t size)
{
	unsigned char *bytes = bytes_zero(size);

	for (size_t at = 0; at < size;) {
		ssize_t got = getrandom(bytes + at, size - at, 0);

		EXPECT(got > 0);
		at += (size_t)got;
	}
	return bytes;
}

size_t bytes_not_transformed(const unsigned char *a, const unsigned char *b, size_t size)
{
	size_t wrong = 0;

	for (size_t i = 0; i < size; i++)
		wrong += b[i] != (a[i] ^ GUEST_CL_KEY);
	return wrong;
}

static int held_count_dmabufs(void)
{
	FILE *info = fopen("/sys/kernel/debug/dma_buf/bufinfo", "re");
	char line[256];
	int count = 0;

	if (!info)
		return 0;
	while (fgets(line, sizeof(line), info))
		sscanf(line, "Total %d objects", &count);
	fclose(info);
	return count;
}

static struct held held_now(void)
{
	return (struct held){ process_count_descriptors(), process_count_mappings(""),
			      held_count_dmabufs() };
}

/* A command may release a dma-buf a moment after the command's event is complete. */
struct held held_settled(void)
{
	EXPECT(process_settles(process_is_quiet, NULL));
	return held_now();
}

static bool held_is(void *before)
{
	const struct held now = held_now();

	return !memcmp(&now, before, sizeof(now));
}

struct held held_since(const struct held *before)
{
	process_settles(held_is, (void *)(uintptr_t)before);
	return held_now();
}
