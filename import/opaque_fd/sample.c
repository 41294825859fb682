/* SPDX-License-Identifier: Apache-2.0 */
/* The exporters, and memory to try drivers with: see import_exporter_get() and import_sample() in import.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/nvidia/cuda/cuda.h"
#include "import/opaque_fd/opaque_cache.h"
#include "util/log.h"
#include "util/thread.h"

#define SIZE 4096 /* bytes: no page is smaller */

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
	},
};

const struct import_exporter *import_exporter_get(unsigned int id)
{
	return &exporters[id];
}

struct sample {
	struct import_region region; /* first */
	struct cuda_memory memory;
};

static void sample_close(struct import_region *region)
{
	struct sample *s = (struct sample *)region;
	THREAD_NO_CANCEL();

	cuda_free(&s->memory);
}

static const struct import_ops sample_ops = { .close = sample_close };

static int sample_of_cuda(const unsigned char *uuid, size_t size, enum cuda_kind kind,
			  struct import_region **region)
{
	struct sample *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return log_errno(ENOMEM, "no memory for a sample");
	ret = cuda_alloc(kind, uuid, size, 0, &s->memory);
	if (ret) {
		free(s);
		return ret;
	}
	import_region_init(&s->region, &sample_ops, (void *)s->memory.addr, size);
	*region = &s->region;
	return 0;
}

int import_sample(unsigned int exporter, const unsigned char uuid[IMPORT_UUID_SIZE],
		  struct import_region **region)
{
	const struct import_sample_want page = { .kind = IMPORT_ANONYMOUS, .size = SIZE };
	int ret = exporter == OPAQUE_BY_CUDA ? sample_of_cuda(uuid, SIZE, CUDA_HOST, region)
					     : import_sample_kind(&page, region);

	if (ret)
		return ret;
	memset((*region)->addr, 0, SIZE);
	(*region)->is_sample = true;
	return 0;
}

int import_sample_on_device(unsigned int exporter, const unsigned char uuid[IMPORT_UUID_SIZE],
			    size_t size, struct import_region **region)
{
	const struct import_exporter *facts = import_exporter_get(exporter);

	if (!facts->has_device_memory)
		return log_errno(EOPNOTSUPP, "%s has no memory of devices", facts->name);
	return sample_of_cuda(uuid, size, CUDA_DEVICE, region);
}
