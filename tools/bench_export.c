/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA memory as a dma-buf: libclimport's call beside CUDA's own call. */
#include "bench.h"

#include <unistd.h>

#define GROUP "export"
#define SHARE 0.03
#define HITS 1000 /* in a sample: a hit is too short for the clock */
#define SMALLEST ((size_t)2 << 20)

struct entry {
	void *address;
	size_t size;
	unsigned int flags;
};

static const char *export_bare(struct bench *b, void *arg, double *seconds)
{
	const struct entry *e = arg;
	const double start = bench_now();
	int fd = bench_cuda_export(b->cuda, (uintptr_t)e->address, e->size);

	seconds[0] = bench_now() - start;
	if (fd < 0)
		return "cuMemGetHandleForAddressRange failed";
	close(fd);
	return NULL;
}

static const char *export_own(struct bench *b, void *arg, double *seconds)
{
	const struct entry *e = arg;
	const double start = bench_now();
	struct climport_dmabuf dmabuf;
	int ret = climport_export_dmabuf(e->address, e->size, e->flags, &dmabuf, sizeof(dmabuf));

	(void)b;
	seconds[0] = bench_now() - start;
	if (ret)
		return climport_last_error();
	close(dmabuf.fd);
	return NULL;
}

static const char *bench_export_register(struct bench *b, void *arg, double *seconds)
{
	const struct entry *e = arg;
	const double start = bench_now();
	struct climport_registration registration;

	(void)b;
	for (int i = 0; i < HITS; i++) {
		int ret = climport_register(e->address, e->size, 0, &registration,
					    sizeof(registration));

		if (ret)
			return climport_last_error();
		climport_unregister(&registration);
	}
	seconds[0] = (bench_now() - start) / HITS;
	return NULL;
}

static void bench_export_race(struct bench *b, struct entry *once, struct entry *kept)
{
	struct racer own[] = {
		{ .name = "cuMemGetHandleForAddressRange", .run = export_bare, .arg = once },
		{ .name = "climport_export_dmabuf", .run = export_own, .arg = once }
	};
	struct racer hit = { .name = "climport_export_dmabuf, kept",
			     .run = export_own,
			     .arg = kept };
	struct racer message = { .name = "climport_register and unregister",
				 .run = bench_export_register,
				 .arg = kept };

	/* A race of its own: a plain export would find the kept export as well. */
	bench_race(b, own, 2, SHARE / 4);
	bench_race(b, &hit, 1, SHARE / 4);
	bench_race(b, &message, 1, SHARE / 4);
	climport_invalidate(kept->address, kept->size);
	for (size_t i = 0; i < 2; i++)
		bench_report(b, GROUP, own[i].name, once->size,
			     bench_figure_times(own[i].figure[0], 1e6), "us", NULL);
	bench_report(b, GROUP, hit.name, once->size, bench_figure_times(hit.figure[0], 1e6), "us",
		     NULL);
	bench_report(b, GROUP, message.name, once->size, bench_figure_times(message.figure[0], 1e6),
		     "us", NULL);
	bench_report(b, GROUP, "  climport_export_dmabuf / CUDA's", once->size,
		     bench_figure_ratio(own[1].figure[0], own[0].figure[0]), "x", "<= 1.15");
	bench_report(b, GROUP, "  kept / CUDA's", once->size,
		     bench_figure_ratio(hit.figure[0], own[0].figure[0]), "x", NULL);
}

static void bench_export_measure(struct bench *b, size_t size)
{
	struct entry once = { .size = size }, kept;

	if (climport_alloc(CLIMPORT_DEVICE, size, 0, b->uuid, &once.address)) {
		bench_skip(GROUP, "climport_export_dmabuf", "there is no device memory");
		return;
	}
	kept = once;
	kept.flags = CLIMPORT_KEEP;
	bench_export_race(b, &once, &kept);
	climport_free(once.address);
}

void bench_export(struct bench *b)
{
	const size_t large = b->largest & ~(SMALLEST - 1);

	bench_progress("exports of CUDA memory");
	if (!b->cuda) {
		bench_skip(GROUP, "CUDA memory as a dma-buf", b->no_cuda);
		return;
	}
	bench_export_measure(b, SMALLEST);
	if (large > SMALLEST)
		bench_export_measure(b, large);
}
