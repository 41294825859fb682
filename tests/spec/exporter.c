/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dma_buf.h"
#include "producer.h"

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

/* NULL where the exporter does not work here. */
static struct dma_buf *dma_buf_create(const struct producer *p, size_t size, int access)
{
	struct dma_buf *buf;
	char why[200];
	int fd;

	if (producer_check(p, access, why, sizeof(why)))
		return NULL;
	fd = producer_create(p, size, access);
	if (fd < 0)
		return NULL;
	buf = calloc(1, sizeof(*buf));
	buf->fd = fd;
	buf->size = producer_size(fd);
	buf->exporter = p->name;
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

static struct dma_buf *first_of(size_t size, int access)
{
	const struct producer *p;
	struct dma_buf *buf;

	need_dma_buf();
	for (size_t i = 0; (p = producer_at(i)); i++) {
		buf = dma_buf_create(p, size, access);
		if (buf)
			return buf;
	}
	test_skip("nothing on this system exports a%s dma-buf",
		  access == O_RDONLY ? " read-only" : "");
}

struct dma_buf *dma_buf_get(size_t size)
{
	return first_of(size, O_RDWR);
}

struct dma_buf *dma_buf_get_read_only(size_t size)
{
	return first_of(size, O_RDONLY);
}

struct dma_buf *dma_buf_next(size_t *i, size_t size)
{
	const struct producer *p;
	struct dma_buf *buf;

	if (!*i)
		first_of(size, O_RDWR);
	while ((p = producer_at((*i)++))) {
		buf = dma_buf_create(p, size, O_RDWR);
		if (buf)
			return buf;
	}
	return NULL;
}

void dma_buf_begin(struct dma_buf *buf)
{
	EXPECT_EQ(producer_cpu_begin(buf->fd, O_RDWR), 0);
}

void dma_buf_end(struct dma_buf *buf)
{
	EXPECT_EQ(producer_cpu_end(buf->fd, O_RDWR), 0);
}
