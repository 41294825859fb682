/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libcuda.so.1 for comparison with imports.  The context stays current. */
#include "bench.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define DMA_BUF_FD 1 /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */

struct bench_cuda {
	void *library;
	int (*init)(unsigned int flags);
	int (*device_count)(int *count);
	int (*device_get)(int *device, int ordinal);
	int (*device_uuid)(unsigned char *uuid, int device);
	int (*retain)(void **context, int device);
	int (*set_current)(void *context);
	int (*alloc)(uint64_t *address, size_t size);
	int (*free)(uint64_t address);
	int (*host_alloc)(void **address, size_t size, unsigned int flags);
	int (*host_free)(void *address);
	int (*to_device)(uint64_t to, const void *from, size_t size);
	int (*to_host)(void *to, uint64_t from, size_t size);
	int (*export)(void *handle, uint64_t address, size_t size, int type,
		      unsigned long long flags); /* may be NULL: CUDA 11.7 */
};

static bool bench_cuda_find(struct bench_cuda *c)
{
	const struct {
		const char *name;
		void *slot;
		bool optional;
	} all[] = {
		{ "cuInit", &c->init, false },
		{ "cuDeviceGetCount", &c->device_count, false },
		{ "cuDeviceGet", &c->device_get, false },
		{ "cuDeviceGetUuid", &c->device_uuid, false },
		{ "cuDevicePrimaryCtxRetain", &c->retain, false },
		{ "cuCtxSetCurrent", &c->set_current, false },
		{ "cuMemAlloc_v2", &c->alloc, false },
		{ "cuMemFree_v2", &c->free, false },
		{ "cuMemHostAlloc", &c->host_alloc, false },
		{ "cuMemFreeHost", &c->host_free, false },
		{ "cuMemcpyHtoD_v2", &c->to_device, false },
		{ "cuMemcpyDtoH_v2", &c->to_host, false },
		{ "cuMemGetHandleForAddressRange", &c->export, true },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		void *symbol = dlsym(c->library, all[i].name);

		if (!symbol && !all[i].optional)
			return false;
		memcpy(all[i].slot, &symbol, sizeof(symbol));
	}
	return true;
}

static bool bench_cuda_enter(const struct bench_cuda *c, const unsigned char *uuid)
{
	unsigned char its[CLIMPORT_UUID_SIZE];
	int count = 0, device;
	void *context;

	if (c->init(0) || c->device_count(&count))
		return false;
	for (int i = 0; i < count; i++)
		if (!c->device_get(&device, i) && !c->device_uuid(its, device) &&
		    !memcmp(its, uuid, sizeof(its)))
			return !c->retain(&context, device) && !c->set_current(context);
	return false;
}

struct bench_cuda *bench_cuda_open(const unsigned char uuid[CLIMPORT_UUID_SIZE], const char **why)
{
	struct bench_cuda *c = calloc(1, sizeof(*c));

	*why = "there is no libcuda.so.1";
	if (c)
		c->library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!c || !c->library)
		goto err;
	*why = "libcuda is too old";
	if (!bench_cuda_find(c))
		goto err;
	*why = "CUDA does not have this device";
	if (!bench_cuda_enter(c, uuid))
		goto err;
	return c; /* for as long as the program runs */

err:
	free(c);
	return NULL;
}

int bench_cuda_pinned(struct bench_cuda *c, size_t size, void **host, uint64_t *device)
{
	int err = c->host_alloc(host, size, 0);

	if (err)
		return -err;
	err = c->alloc(device, size);
	if (err)
		c->host_free(*host);
	return -err;
}

void bench_cuda_unpin(struct bench_cuda *c, void *host, uint64_t device)
{
	c->free(device);
	c->host_free(host);
}

int bench_cuda_write(struct bench_cuda *c, uint64_t device, const void *host, size_t size)
{
	return -c->to_device(device, host, size);
}

int bench_cuda_read(struct bench_cuda *c, void *host, uint64_t device, size_t size)
{
	return -c->to_host(host, device, size);
}

int bench_cuda_export(struct bench_cuda *c, uint64_t device, size_t size)
{
	int fd, err = c->export ? c->export(&fd, device, size, DMA_BUF_FD, 0) : 801;

	return err ? -err : fd;
}
