/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

/*
 * CUDA's host memory is mapped past a GPU's cache.  Vulkan maps host memory so that the GPU's cache
 * keeps what kernels have read.
 */
const struct import_exporter *import_exporter_get(enum import_exporter_id id)
{
	static const struct import_exporter exporters[IMPORT_EXPORTERS] = {
		[IMPORT_BY_CUDA] = {
			.name = "CUDA",
			.memory = "memory of CUDA's cuMemCreate",
			.may_be_coherent = true,
			.has_device_memory = true,
		},
		[IMPORT_BY_VULKAN] = {
			.name = "Vulkan",
			.memory = "any pages by Vulkan",
		},
	};

	return &exporters[id];
}
