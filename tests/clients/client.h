/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the extension as known programs make them, with a file for each program.  The tests run
 * on the loader, the layer and a real driver.  dma-bufs are udmabufs if /dev/udmabuf can be opened,
 * else fakes (tests/stub).  client_close() checks that no descriptor is left.
 */
#ifndef TESTS_CLIENTS_CLIENT_H
#define TESTS_CLIENTS_CLIENT_H

#include <CL/cl_ext.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness.h"

enum { PAGE = 4096 };

struct client {
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	__typeof__(&clImportMemoryARM) import;
	bool has_planes;  /* the driver has images of one channel of 8 bits */
	int descriptors;  /* open before the first import */
	char notice[512]; /* the last sentence that the context's callback got */
};

extern struct client client;

void client_open(void);
void client_close(void);

/* CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE; 64 where a driver (rusticl) reports 0. */
size_t client_cache_line(void);

/* Bytes.  A part of a buffer begins at a multiple. */
size_t client_base_alignment(void);

/*
 * @err is that of an import at @at.  If buffers of the device begin pages, the import is a part of a
 * buffer on the pages, and other addresses are refused: the test is skipped, where a client would copy.
 */
void client_expect_import(cl_int err, const void *at);

/* Whether the extension string of the platform or the device has the word @extension. */
bool client_platform_has(const char *extension);
bool client_device_has(const char *extension);

/* A dma-buf, mapped by the program. */
struct dmabuf {
	int fd;
	size_t size;
	unsigned char *at;
};

void client_dmabuf_create(struct dmabuf *dmabuf, size_t size);
void client_dmabuf_destroy(struct dmabuf *dmabuf);
int client_dmabuf_read_only(const struct dmabuf *dmabuf); /* a new descriptor with O_RDONLY */

/* The SYNC calls around a CPU's own accesses. */
void client_dmabuf_begin(const struct dmabuf *dmabuf);
void client_dmabuf_end(const struct dmabuf *dmabuf);

/* Of clEnqueueAcquire- and clEnqueueReleaseExternalMemObjectsKHR alike. */
typedef clEnqueueAcquireExternalMemObjectsKHR_fn client_edge_fn;

/* Both, found by name as programs do, which give up without them: a missing one fails the test. */
void client_find_edges(client_edge_fn *acquire, client_edge_fn *release);

/* Whether the driver has 2D images of two channels of 8 bits, which kernels read. */
bool client_has_pairs(void);

/* Increments each byte by a kernel, and waits. */
void client_increment(cl_mem mem, size_t size);

/* Reads an image of one channel into bytes, and waits. */
void client_read_plane(cl_mem image, unsigned char *to, size_t width, size_t height);

/* An image on a buffer, one channel of 8 bits. */
cl_mem client_plane(cl_mem buffer, cl_mem_flags flags, size_t width, size_t height, size_t pitch);

#endif
