/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory to try drivers with: see import_sample() in import.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/opaque_fd/exporter.h"
#include "import/ops.h"
#include "util/log.h"

#define SIZE 4096

struct sample {
	struct import_region region; /* first */
	const struct opaque_exporter *exporter;
	struct opaque_sample memory;
};

static void sample_unpin(struct import_region *region)
{
	struct sample *s = (struct sample *)region;

	s->exporter->sample_free(&s->memory);
}

static const struct import_ops sample_ops = { .name = "sample", .unpin = sample_unpin };

int import_sample(unsigned int exporter, const unsigned char uuid[IMPORT_UUID_SIZE],
		  struct import_region **region)
{
	struct sample *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return log_errno(ENOMEM, "no memory for a sample");
	s->exporter = opaque_exporter_get(exporter);
	s->memory.size = SIZE;
	ret = s->exporter->sample(uuid, &s->memory);
	if (ret) {
		free(s);
		return ret;
	}
	s->region.ops = &sample_ops;
	s->region.refs = 1;
	s->region.addr = s->memory.addr;
	s->region.size = SIZE;
	s->region.fd = -1;
	s->region.access = s->region.wanted = IMPORT_READ | IMPORT_WRITE;
	memset(s->region.addr, 0, SIZE);
	*region = &s->region;
	return 0;
}
