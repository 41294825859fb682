/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/exporter.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "import/nvidia/cuda/cuda.h"
#include "util/log.h"

static int exporter_map_page(const unsigned char *uuid, struct opaque_sample *sample)
{
	(void)uuid;
	sample->addr = mmap(NULL, sample->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	return sample->addr == MAP_FAILED ? log_errno(errno, "no page: %m") : 0;
}

static void exporter_unmap_page(struct opaque_sample *sample)
{
	munmap(sample->addr, sample->size);
}

static int exporter_cuda_sample(const unsigned char *uuid, struct opaque_sample *sample)
{
	struct cuda_memory *memory = calloc(1, sizeof(*memory));
	int ret;

	if (!memory)
		return log_errno(ENOMEM, "no memory for a sample");
	ret = cuda_alloc(sample->is_on_device ? CUDA_DEVICE : CUDA_HOST, uuid, sample->size, 0,
			 memory);
	if (ret) {
		free(memory);
		return ret;
	}
	sample->memory = memory;
	sample->addr = (void *)memory->addr;
	return 0;
}

static void exporter_cuda_free(struct opaque_sample *sample)
{
	cuda_free(sample->memory);
	free(sample->memory);
}

static const struct opaque_exporter exporters[OPAQUE_EXPORTERS] = {
	[OPAQUE_BY_CUDA] = {
		.facts = {
			.name = "CUDA",
			.memory = "memory of CUDA's cuMemCreate",
			.has_device_memory = true,
		},
		.sample = exporter_cuda_sample,
		.sample_free = exporter_cuda_free,
	},
	[OPAQUE_BY_RM] = {
		.facts = {
			.name = "RM",
			.memory = "any pages by RM",
			.has_pages = true,
		},
		.sample = exporter_map_page,
		.sample_free = exporter_unmap_page,
	},
};

const struct opaque_exporter *opaque_exporter_get(unsigned int id)
{
	return &exporters[id];
}

const struct import_exporter *import_exporter_get(unsigned int id)
{
	return &exporters[id].facts;
}
