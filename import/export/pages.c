/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of host memory as dma-bufs: see import_pages() in import.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import/export/export.h"
#include "import/import.h"
#include "util/address.h"
#include "util/log.h"
#include "util/thread.h"

/* Memory of a memfd, whose descriptor udmabuf has to find. */
struct pages_sample {
	struct import_region region; /* first */
	int memfd;
};

/* An exporter that is not there is no shortage. */
static int pages_errno(int ret)
{
	switch (ret) {
	case -ENXIO:
	case -EACCES:
	case -EINVAL:
	case -ENODEV:
		return -EOPNOTSUPP;
	}
	return ret;
}

int import_pages(const struct import_region *region, struct import_pages *out)
{
	const unsigned int options = region->access & IMPORT_WRITE ? 0 : EXPORT_READ_ONLY;
	struct export_range range;
	int ret = export_dmabuf(address_of(region->addr), region->size, options, &range);

	if (ret)
		return pages_errno(ret);
	*out = (struct import_pages){ range.fd, range.offset };
	return 0;
}

static void pages_sample_unpin(struct import_region *region)
{
	struct pages_sample *s = (struct pages_sample *)region;
	THREAD_NO_CANCEL();

	munmap(region->addr, region->size);
	close(s->memfd);
}

static const struct import_ops pages_sample_ops = { .unpin = pages_sample_unpin };

static int pages_sample_fill(struct pages_sample *s, size_t size)
{
	void *addr;

	s->memfd = memfd_create("climport", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->memfd < 0)
		return -errno;
	if (ftruncate(s->memfd, (off_t)size) || fcntl(s->memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return -ENOMEM;
	addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, s->memfd, 0);
	if (addr == MAP_FAILED)
		return -ENOMEM;
	import_region_init(&s->region, &pages_sample_ops, addr, size);
	return 0;
}

static int pages_sample_create(size_t size, struct import_region **region)
{
	struct pages_sample *s = calloc(1, sizeof(*s));
	int ret = s ? pages_sample_fill(s, size) : -ENOMEM;

	if (ret) {
		if (s && s->memfd >= 0)
			close(s->memfd);
		free(s);
		return ret;
	}
	*region = &s->region;
	return 0;
}

/* A sealed memfd: every exporter takes its pages. */
int import_sample_pages(size_t size, struct import_region **region)
{
	struct import_pages pages;
	int ret = pages_sample_create(size, region);

	if (ret)
		return ret;
	log_hold();
	ret = import_pages(*region, &pages);
	log_resume(false);
	if (ret)
		import_put(*region);
	else
		close(pages.fd);
	return ret;
}
