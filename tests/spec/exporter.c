/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dma_buf.h"
#include "heap.h"

#define CONSISTENCY CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM

const cl_import_properties_arm type_dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						  0 };

const cl_import_properties_arm *coherent_dma_buf(void)
{
	static const cl_import_properties_arm with_property[] = { CL_IMPORT_TYPE_ARM,
								  CL_IMPORT_TYPE_DMA_BUF_ARM,
								  CONSISTENCY, CL_TRUE, 0 };

	return spec.version >= VERSION_1_1_0 ? with_property : type_dma_buf;
}

static void dma_buf_destroy(void *arg)
{
	struct dma_buf *buf = arg;

	munmap(buf->memory, buf->size);
	close(buf->fd);
	free(buf);
}

/* NULL, and no descriptor, if the test cannot map the dma-buf: protected memory. */
static struct dma_buf *dma_buf_map(int fd, const char *exporter, int access)
{
	struct dma_buf *buf = calloc(1, sizeof(*buf));

	buf->fd = fd;
	buf->size = heap_size_of(fd);
	buf->exporter = exporter;
	buf->memory = mmap(NULL, buf->size, access == O_RDWR ? PROT_READ | PROT_WRITE : PROT_READ,
			   MAP_SHARED, fd, 0);
	if (buf->memory == MAP_FAILED) {
		close(fd);
		free(buf);
		return NULL;
	}
	spec_undo_later(dma_buf_destroy, buf);
	return buf;
}

/* NULL where the exporter does not work here. */
static struct dma_buf *dma_buf_create(const struct heap *heap, size_t size, int access)
{
	size_t pages = (size + spec.page - 1) / spec.page;
	int fd = heap->create(heap, pages * spec.page, access);

	return fd < 0 ? NULL : dma_buf_map(fd, heap->name, access);
}

static struct dma_buf *first_of(size_t size, int access)
{
	const struct heap *heap;
	struct dma_buf *buf;

	for (size_t i = 0; (heap = heap_at(i)); i++) {
		buf = dma_buf_create(heap, size, access);
		if (buf)
			return buf;
	}
	test_skip("nothing on this system exports a%s dma-buf",
		  access == O_RDONLY ? " read-only" : "");
}

struct dma_buf *dma_buf_make(size_t size)
{
	return first_of(size, O_RDWR);
}

struct dma_buf *dma_buf_get(size_t size)
{
	need_dma_buf();
	return first_of(size, O_RDWR);
}

struct dma_buf *dma_buf_get_read_only(size_t size)
{
	need_dma_buf();
	return first_of(size, O_RDONLY);
}

struct dma_buf *dma_buf_next(size_t *i, size_t size)
{
	const struct heap *heap;
	struct dma_buf *buf;

	if (!*i)
		first_of(size, O_RDWR);
	while ((heap = heap_at((*i)++))) {
		buf = dma_buf_create(heap, size, O_RDWR);
		if (buf)
			return buf;
	}
	return NULL;
}

int dma_buf_get_protected(size_t size)
{
	int fd;

	if (!spec.has_protected)
		test_skip("device does not report cl_arm_import_memory_protected");
	need_dma_buf();
	if (!spec.protected_heap)
		test_skip("no protected memory: --protected-heap names none");
	fd = heap_create_in(spec.protected_heap, (size + spec.page - 1) / spec.page * spec.page,
			    O_RDWR);
	if (fd < 0)
		test_skip("%s: %s", spec.protected_heap, strerror(-fd));
	spec_undo_later(spec_close_descriptor, (void *)(intptr_t)fd);
	return fd;
}

void dma_buf_begin(struct dma_buf *buf)
{
	EXPECT_EQ(heap_begin_cpu(buf->fd), 0);
}

void dma_buf_end(struct dma_buf *buf)
{
	EXPECT_EQ(heap_end_cpu(buf->fd), 0);
}
