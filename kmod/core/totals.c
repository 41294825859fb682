// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Totals of the machine, for root: what is pinned, and how many watches there are. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "core.h"

atomic64_t gdmabuf_host_bytes, gdmabuf_gpu_bytes, gdmabuf_watches;
static struct dentry *totals;

static int gdmabuf_totals_show(struct seq_file *seq, void *unused)
{
	seq_printf(seq, "host-bytes:\t%lld\n", atomic64_read(&gdmabuf_host_bytes));
	seq_printf(seq, "gpu-bytes:\t%lld\n", atomic64_read(&gdmabuf_gpu_bytes));
	seq_printf(seq, "watches:\t%lld\n", atomic64_read(&gdmabuf_watches));
	return 0;
}

DEFINE_SHOW_ATTRIBUTE(gdmabuf_totals);

void gdmabuf_totals_create(void)
{
	totals = debugfs_create_file("gdmabuf", 0400, NULL, NULL, &gdmabuf_totals_fops);
}

void gdmabuf_totals_destroy(void)
{
	debugfs_remove(totals);
}
