/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of host memory as dma-bufs: see import_pages() in import.h. */
#include <errno.h>
#include <unistd.h>

#include "import/export/export.h"
#include "import/import.h"
#include "util/address.h"
#include "util/log.h"

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

/* Every exporter takes the pages of a sealed memfd. */
int import_sample_pages(size_t size, struct import_region **region)
{
	const struct import_sample_want want = { .kind = IMPORT_SHMEM, .size = size };
	struct import_pages pages;
	int ret = import_sample_kind(&want, region);

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
