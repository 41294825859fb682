/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA maps its host memory past a GPU's cache, and so does RM any host memory if asked to.  Vulkan
 * maps host memory so that the GPU's cache keeps what kernels have read.
 */
#include "import/opaque_fd/exporter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "import/nvidia/cuda/cuda.h"
#include "import/nvidia/rm/rm.h"
#include "import/nvidia/vulkan/vulkan.h"
#include "util/log.h"
#include "util/setting.h"

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

static int exporter_rm_host(const unsigned char *uuid, void *addr, size_t size,
			    struct opaque_export *export)
{
	return rm_import_host(uuid, addr, size, &export->fd);
}

static int exporter_rm_dmabuf(const unsigned char *uuid, int dmabuf, size_t size,
			      struct opaque_export *export)
{
	return rm_import_dmabuf(uuid, dmabuf, size, &export->fd);
}

static int exporter_vulkan_host(const unsigned char *uuid, void *addr, size_t size,
				struct opaque_export *export)
{
	struct vulkan_memory *memory = NULL;
	int ret = vulkan_import_host(uuid, addr, size, &memory, &export->fd);

	export->memory = memory;
	return ret;
}

static int exporter_vulkan_dmabuf(const unsigned char *uuid, int dmabuf, size_t size,
				  struct opaque_export *export)
{
	struct vulkan_memory *memory = NULL;
	int ret = vulkan_import_dmabuf(uuid, dmabuf, size, &memory, &export->fd);

	export->memory = memory;
	return ret;
}

static void exporter_vulkan_free(void *memory)
{
	vulkan_free(memory);
}

static const struct opaque_exporter exporters[OPAQUE_EXPORTERS] = {
	[OPAQUE_BY_CUDA] = {
		.facts = {
			.name = "CUDA",
			.memory = "memory of CUDA's cuMemCreate",
			.has_device_memory = true,
			.unless = OPAQUE_BY_CUDA,
		},
		.sample = exporter_cuda_sample,
		.sample_free = exporter_cuda_free,
	},
	[OPAQUE_BY_RM] = {
		.facts = {
			.name = "RM",
			.memory = "any pages by RM",
			.has_pages = true,
			.unless = OPAQUE_BY_RM,
		},
		.by = "rm",
		.sample = exporter_map_page,
		.sample_free = exporter_unmap_page,
		.import_host = exporter_rm_host,
		.import_dmabuf = exporter_rm_dmabuf,
		.keeps_pages = true,
	},
	[OPAQUE_BY_VULKAN] = {
		.facts = {
			.name = "Vulkan",
			.memory = "any pages by Vulkan",
			.has_pages = true,
			.is_cached = true,
			.unless = OPAQUE_BY_RM,
		},
		.by = "vulkan",
		.sample = exporter_map_page,
		.sample_free = exporter_unmap_page,
		.import_host = exporter_vulkan_host,
		.import_dmabuf = exporter_vulkan_dmabuf,
		.free = exporter_vulkan_free,
		.takes_all_dmabufs = vulkan_takes_dmabufs,
	},
};

const struct opaque_exporter *opaque_exporter_get(unsigned int id)
{
	return &exporters[id];
}

unsigned int opaque_exporter_choose(unsigned int allowed)
{
	unsigned int last = OPAQUE_EXPORTERS - 1;

	for (unsigned int id = 0; id < OPAQUE_EXPORTERS; id++) {
		if (!exporters[id].import_host)
			continue;
		if (allowed & 1u << id)
			return id;
		if (import_exporter_is_allowed(id))
			last = id;
	}
	return last;
}

const struct import_exporter *import_exporter_get(unsigned int id)
{
	return &exporters[id].facts;
}

/* Without a value all are. */
bool import_exporter_is_allowed(unsigned int id)
{
	const char *by = setting_get("CLIMPORT_NVIDIA_BY");

	return !by || !exporters[id].by || !strcmp(by, exporters[id].by);
}
