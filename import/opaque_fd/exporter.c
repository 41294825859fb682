/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "import/import.h"

/*
 * CUDA maps its host memory past a GPU's cache, and so does RM any host memory if asked to.  Vulkan
 * maps host memory so that the GPU's cache keeps what kernels have read.
 */
const struct import_exporter *import_exporter_get(enum import_exporter_id id)
{
	static const struct import_exporter exporters[IMPORT_EXPORTERS] = {
		[IMPORT_BY_CUDA] = {
			.name = "CUDA",
			.memory = "memory of CUDA's cuMemCreate",
			.has_device_memory = true,
			.unless = IMPORT_BY_CUDA,
		},
		[IMPORT_BY_RM] = {
			.name = "RM",
			.memory = "any pages by RM",
			.unless = IMPORT_BY_RM,
		},
		[IMPORT_BY_VULKAN] = {
			.name = "Vulkan",
			.memory = "any pages by Vulkan",
			.is_cached = true,
			.unless = IMPORT_BY_RM,
		},
	};

	return &exporters[id];
}

bool import_exporter_is_allowed(enum import_exporter_id id)
{
	const char *by = secure_getenv("CLIMPORT_NVIDIA_BY");

	switch (id) {
	case IMPORT_BY_RM:
		return !by || strcmp(by, "vulkan");
	case IMPORT_BY_VULKAN:
		return !by || strcmp(by, "rm");
	default:
		return true;
	}
}
