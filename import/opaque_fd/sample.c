/* SPDX-License-Identifier: Apache-2.0 */
/* The exporters, and memory to try drivers with: see import_exporter_get() and import_sample() in import.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "import/nvidia/cuda/cuda.h"
#include "import/opaque_fd/opaque_cache.h"
#include "util/log.h"
#include "util/thread.h"

#define SIZE 4096

/* Results of self-tests have the names. */
static const struct import_exporter exporters[IMPORT_EXPORTERS] = {
	[OPAQUE_BY_CUDA] = {
		.name = "CUDA",
		.memory = "memory of CUDA's cuMemCreate",
		.has_device_memory = true,
	},
	[OPAQUE_BY_RM] = {
		.name = "RM",
		.memory = "any pages by RM",
		.has_pages = true,
	},
};

const struct import_exporter *import_exporter_get(unsigned int id)
{
	return &exporters[id];
}

struct sample {
	struct import_region region; /* first */
	struct cuda_memory memory;   /* of size 0: pages of the process */
};

static void sample_unpin(struct import_region *region)
{
	struct sample *s = (struct sample *)region;
	THREAD_NO_CANCEL();

	if (s->memory.size)
		cuda_free(&s->memory);
	else
		munmap(region->addr, region->size);
}

static const struct import_ops sample_ops = { .unpin = sample_unpin };

static int sample_map(size_t size, void **addr)
{
	*addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return *addr == MAP_FAILED ? log_errno(errno, "no page: %m") : 0;
}

static int sample_create(unsigned int exporter, const unsigned char *uuid, size_t size,
			 enum cuda_kind kind, struct import_region **region)
{
	struct sample *s = calloc(1, sizeof(*s));
	void *addr = NULL;
	int ret;

	if (!s)
		return log_errno(ENOMEM, "no memory for a sample");
	ret = exporter == OPAQUE_BY_CUDA ? cuda_alloc(kind, uuid, size, 0, &s->memory)
					 : sample_map(size, &addr);
	if (ret) {
		free(s);
		return ret;
	}
	import_region_init(&s->region, &sample_ops, addr ? addr : (void *)s->memory.addr, size);
	s->region.is_sample = true;
	*region = &s->region;
	return 0;
}

int import_sample(unsigned int exporter, const unsigned char uuid[IMPORT_UUID_SIZE],
		  struct import_region **region)
{
	int ret = sample_create(exporter, uuid, SIZE, CUDA_HOST, region);

	if (!ret)
		memset((*region)->addr, 0, SIZE);
	return ret;
}

int import_sample_on_device(unsigned int exporter, const unsigned char uuid[IMPORT_UUID_SIZE],
			    size_t size, struct import_region **region)
{
	const struct import_exporter *facts = import_exporter_get(exporter);

	if (!facts->has_device_memory)
		return log_errno(EOPNOTSUPP, "%s has no memory of devices", facts->name);
	return sample_create(exporter, uuid, size, CUDA_DEVICE, region);
}
