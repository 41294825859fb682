/* SPDX-License-Identifier: Apache-2.0 */
/* Memory to try drivers with: see import_sample() and import_sample_on_device() in import.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/opaque_fd/exporter.h"
#include "import/ops.h"
#include "util/log.h"
#include "util/thread.h"

#define SIZE 4096

struct sample {
	struct import_region region; /* first */
	const struct opaque_exporter *exporter;
	struct opaque_sample memory;
};

static void sample_unpin(struct import_region *region)
{
	struct sample *s = (struct sample *)region;
	THREAD_NO_CANCEL();

	s->exporter->sample_free(&s->memory);
}

static const struct import_ops sample_ops = { .name = "sample", .unpin = sample_unpin };

static int sample_create(unsigned int exporter, const unsigned char *uuid, size_t size,
			 bool is_on_device, struct import_region **region)
{
	struct sample *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return log_errno(ENOMEM, "no memory for a sample");
	s->exporter = opaque_exporter_get(exporter);
	s->memory.size = size;
	s->memory.is_on_device = is_on_device;
	ret = s->exporter->sample(uuid, &s->memory);
	if (ret) {
		free(s);
		return ret;
	}
	s->region.ops = &sample_ops;
	s->region.refs = 1;
	s->region.addr = s->memory.addr;
	s->region.size = size;
	s->region.fd = -1;
	s->region.is_sample = true;
	s->region.access = s->region.wanted = IMPORT_READ | IMPORT_WRITE;
	*region = &s->region;
	return 0;
}

int import_sample(unsigned int exporter, const unsigned char uuid[IMPORT_UUID_SIZE],
		  struct import_region **region)
{
	int ret = sample_create(exporter, uuid, SIZE, false, region);

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
	return sample_create(exporter, uuid, size, true, region);
}
