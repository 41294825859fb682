// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Counters: of each context in fdinfo, and the total in debugfs. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "core.h"

struct gdmabuf_counters gdmabuf_total;
static struct dentry *directory;

void gdmabuf_stats_show(struct seq_file *seq, const struct gdmabuf_counters *c)
{
	const struct {
		const char *name;
		const atomic64_t *value;
	} rows[] = {
		{ "host-pins", &c->pins[0] },
		{ "host-bytes", &c->bytes[0] },
		{ "gpu-pins", &c->pins[1] },
		{ "gpu-bytes", &c->bytes[1] },
		{ "exports", &c->exports },
		{ "hits", &c->hits },
		{ "evictions", &c->evictions },
		{ "retries", &c->retries },
		{ "stale", &c->stale },
		{ "revoked", &c->revoked },
		{ "host-watches", &c->host_watches },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		seq_printf(seq, "gdmabuf-%s:\t%lld\n", rows[i].name, atomic64_read(rows[i].value));
}

DEFINE_SHOW_ATTRIBUTE(gdmabuf_contexts);

void gdmabuf_stats_create(void)
{
	directory = debugfs_create_dir("gdmabuf", NULL);
	debugfs_create_file("contexts", 0400, directory, NULL, &gdmabuf_contexts_fops);
}

void gdmabuf_stats_destroy(void)
{
	debugfs_remove(directory);
}
