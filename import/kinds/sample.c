/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory to try drivers with: see import_sample() in import.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "import/nvidia/cuda/cuda.h"
#include "import/ops.h"
#include "util/log.h"

#define SIZE 4096

struct sample {
	struct import_region region; /* first */
	enum import_exporter_id exporter;
	struct cuda_memory cuda;
};

static void sample_unpin(struct import_region *region)
{
	struct sample *s = (struct sample *)region;

	if (s->exporter == IMPORT_BY_CUDA)
		cuda_free(&s->cuda);
	else
		munmap(region->addr, SIZE);
}

static const struct import_ops sample_ops = { .name = "sample", .unpin = sample_unpin };

static int sample_allocate(struct sample *s, const unsigned char *uuid)
{
	int ret;

	if (s->exporter == IMPORT_BY_CUDA) {
		ret = cuda_alloc(CUDA_HOST, uuid, SIZE, 0, &s->cuda);
		s->region.addr = (void *)s->cuda.addr;
		return ret;
	}
	s->region.addr =
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return s->region.addr == MAP_FAILED ? log_errno(errno, "no page: %m") : 0;
}

int import_sample(enum import_exporter_id exporter, const unsigned char uuid[IMPORT_UUID_SIZE],
		  struct import_region **region)
{
	struct sample *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return log_errno(ENOMEM, "no memory for a sample");
	s->exporter = exporter;
	s->region.ops = &sample_ops;
	s->region.refs = 1;
	s->region.size = SIZE;
	s->region.fd = -1;
	s->region.access = s->region.wanted = IMPORT_READ | IMPORT_WRITE;
	ret = sample_allocate(s, uuid);
	if (ret) {
		free(s);
		return ret;
	}
	memset(s->region.addr, 0, SIZE);
	*region = &s->region;
	return 0;
}
