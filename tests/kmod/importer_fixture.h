/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of the tests of importers. */
#ifndef TESTS_KMOD_IMPORTER_FIXTURE_H
#define TESTS_KMOD_IMPORTER_FIXTURE_H

#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

enum { LENGTH = 8 * GPU_PAGE, PIECE = 2048 };

extern unsigned char bytes[LENGTH];

/* A dma-buf of GPU memory, or of host memory, and an importer. */
struct setup {
	int gpu, ctx, importer, fd;
	uint64_t va;
};

struct setup import_test_begin(uint32_t alloc_flags);

void import_test_end(struct setup *s);

struct setup setup_host(unsigned char *p, uint32_t flags);

int import_attach(const struct setup *s, uint32_t mode, uint32_t flags);

/*
 * Attaches, maps and detaches.  Returns the first error, as some kernels map already in the attach.
 */
int attach_and_map(const struct setup *s, struct gdmabuf_importer_attach arg);

#endif
