/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory that a preloaded library shows as dma-bufs: for machines without an exporter. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "heap.h"

int heap_create_fake(const struct heap *heap, size_t size, int access)
{
	void *symbols[] = { dlsym(RTLD_DEFAULT, "fake_dmabuf_create"),
			    dlsym(RTLD_DEFAULT, "fake_dmabuf_reopen") };
	int (*create)(const char *name, size_t size);
	int (*reopen)(int fd, int access);
	int fd, again;

	if (!symbols[0] || !symbols[1])
		return -ENODEV;
	memcpy(&create, &symbols[0], sizeof(create));
	memcpy(&reopen, &symbols[1], sizeof(reopen));
	fd = create(heap->name, size);
	if (fd < 0)
		return -ENOMEM;
	again = reopen(fd, access);
	close(fd);
	return again < 0 ? -ENOMEM : again;
}
