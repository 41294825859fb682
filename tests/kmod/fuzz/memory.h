/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the fuzzer's process.
 *
 * The arena is the memory to export.  Threads remap the arena all the time, so a page may be absent
 * or read-only when a thread touches the page: the fault is caught.  A view is a mapping of a
 * dma-buf.
 */
#ifndef TESTS_KMOD_FUZZ_MEMORY_H
#define TESTS_KMOD_FUZZ_MEMORY_H

#include <stddef.h>
#include <unistd.h>

enum {
	FUZZ_ARENA = 8 << 20,
	/* The longest copy of the GPU, and the length of each inaccessible margin of the arena. */
	FUZZ_COPY_MAX = 0x20000,
};

#define FUZZ_PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define FUZZ_ARENA_PAGES (FUZZ_ARENA / FUZZ_PAGE)

extern unsigned char *arena;

/* Maps the arena and catches faults; exits with 2 on failure. */
void fuzz_memory_begin(void);

/* A random range of the arena, in whole pages. */
unsigned char *fuzz_any_range(size_t *length);

/* Call: unmaps, remaps, protects, advises or touches a range of the arena. */
void fuzz_remap(void);

/* Calls: map a dma-buf, an importer or a status page; use a view; unmap a view. */
void fuzz_view_map(void);
void fuzz_view_use(void);
void fuzz_view_unmap(void);

/* Unmaps every view. */
void fuzz_views_unmap(void);

/* In a child: the views are the parent's mappings, which the child does not have to unmap. */
void fuzz_views_forget(void);

#endif
