/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in front of libibverbs: a dma-buf is registered by the memory behind it, so that soft-RoCE,
 * which refuses dma-bufs, moves the fake libcuda's GPU memory as an adapter would.  The memory keeps
 * its mapping.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

struct ibv_pd;
struct ibv_mr;

typedef struct ibv_mr *(*region_register_fn)(struct ibv_pd *pd, void *address, size_t length,
					     uint64_t name, int access);

__attribute__((visibility("default"))) struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t name, int fd,
		  int access);

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t name,
				 int fd, int access)
{
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
	region_register_fn region_register = NULL;
	char *memory = mmap(NULL, offset + length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (library)
		*(void **)&region_register = dlsym(library, "ibv_reg_mr_iova");
	if (!region_register || memory == MAP_FAILED) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return region_register(pd, memory + offset, length, name, access);
}
