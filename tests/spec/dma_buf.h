/* SPDX-License-Identifier: Apache-2.0 */
/* dma-bufs for the tests, from the exporters of heap.h. */
#ifndef TESTS_SPEC_DMA_BUF_H
#define TESTS_SPEC_DMA_BUF_H

#include "spec.h"

struct dma_buf {
	int fd;
	size_t size;	       /* of the allocation */
	unsigned char *memory; /* the test's own mapping */
	const char *exporter;
};

/*
 * A dma-buf of at least @size bytes, freed after the test.  If the device imports no dma-bufs, or
 * the system has no exporter, the test is skipped.
 */
struct dma_buf *dma_buf_get(size_t size);

/* Likewise, whatever the device imports. */
struct dma_buf *dma_buf_make(size_t size);

/* Likewise with a read-only descriptor and a read-only mapping; all bytes are 0. */
struct dma_buf *dma_buf_get_read_only(size_t size);

/* A dma-buf of each exporter in turn, from *i == 0 on; NULL after the last exporter. */
struct dma_buf *dma_buf_next(size_t *i, size_t size);

/*
 * A descriptor of protected memory of the heap on the command line, closed after the test.  Without a
 * heap, or if the device imports no protected memory, the test is skipped.
 */
int dma_buf_get_protected(size_t size);

/* Brackets the host's use of buf->memory if coherency is the application's duty. */
void dma_buf_begin(struct dma_buf *buf);
void dma_buf_end(struct dma_buf *buf);

extern const cl_import_properties_arm type_dma_buf[];

/* The type, and in 1.1.0 the property by which the runtime keeps the memory coherent. */
const cl_import_properties_arm *coherent_dma_buf(void);

#endif /* TESTS_SPEC_DMA_BUF_H */
