/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin of version 9 that claims dma-bufs, and has no regMrDmaBuf: the plugin of the file INNER,
 * otherwise.
 */
#include "nccl/net_abi.h"

#include <dlfcn.h>
#include <stdlib.h>

extern __attribute__((visibility("default"))) struct nccl_net_v9
	without_dmabuf __asm__("ncclNetPlugin_v9");
struct nccl_net_v9 without_dmabuf;

__attribute__((constructor)) static void without_dmabuf_load(void)
{
	void *library = dlopen(INNER, RTLD_NOW | RTLD_LOCAL);
	const struct nccl_net_v9 *inner = library ? dlsym(library, "ncclNetPlugin_v9") : NULL;

	if (!inner)
		abort();
	without_dmabuf = *inner;
	without_dmabuf.regMrDmaBuf = NULL;
}
