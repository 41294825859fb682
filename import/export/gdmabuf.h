/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel module gdmabuf: ranges of this process as dma-bufs, pinned anew or kept (kmod/).
 *
 * A process has one context, opened at the first export.  A child after fork() opens a context, and
 * so does a process that has closed the context's descriptor.  The older context goes when it has no
 * watch, unless there was an export.
 * Functions return 0 or a negative errno, may sleep, and be called from any thread.
 */
#ifndef IMPORT_EXPORT_GDMABUF_H
#define IMPORT_EXPORT_GDMABUF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The GPU memory of a CUDA device pointer, or host memory. */
enum gdmabuf_memory { GDMABUF_MEMORY_HOST, GDMABUF_MEMORY_GPU };

enum gdmabuf_export_option {
	GDMABUF_OPTION_READ_ONLY = 1 << 0,
	GDMABUF_OPTION_KEEP = 1 << 1,
	GDMABUF_OPTION_REVOCABLE = 1 << 2, /* GPU memory alone */
	GDMABUF_OPTION_UNWATCHED = 1 << 3, /* GPU memory alone: gdmabuf_is_current() is not asked */
};

struct gdmabuf_range {
	int fd;	       /* the caller's */
	size_t offset; /* of the range in @fd */
	/* For gdmabuf_is_current(). */
	uint32_t context, slot, generation;
	const _Atomic uint32_t *status; /* reads @generation while current; never unmapped */
};

/* Whether the process may open /dev/gdmabuf.  Not logged; at most an open(2). */
bool gdmabuf_is_available(void);

/*
 * Exports [@address, @address + @size), rounded to whole pages.  Errors as in
 * <CL/climport.h>, and -EOPNOTSUPP if nobody provides GPU memory.
 */
int gdmabuf_export(enum gdmabuf_memory memory, uintptr_t address, size_t size, unsigned int options,
		   struct gdmabuf_range *range);

/*
 * Whether the exported address still means the exported pages: one load.  No, if the export came
 * before a fork(), or before the program closed the context's descriptor.
 */
int gdmabuf_is_current(const struct gdmabuf_range *range);

struct gdmabuf_context;

/* A watch of host memory: pins nothing. */
struct gdmabuf_watch {
	struct gdmabuf_context *context;
	uint32_t slot, generation;
	const _Atomic uint32_t *status; /* reads @generation while current; mapped until the drop */
};

/*
 * Whether the process can watch host memory.  0; -EMFILE, -ENFILE, -ENOMEM: not now; -ENXIO: no
 * module; -EACCES: the device may not be opened; -EOPNOTSUPP: an older module.
 */
int gdmabuf_watch_probe(void);

/* What gdmabuf_watch_probe() says, as a clause for `climport info`. */
const char *gdmabuf_watch_describe(void);

/*
 * Watches the whole pages around the range: the word changes before the call returns that takes a
 * page away from the address.  Errors as gdmabuf_watch_probe(); -ENOSPC: too many watches; -EINVAL:
 * no range; -EFAULT: no address of a process.  Not logged.
 */
int gdmabuf_watch_begin(uintptr_t address, size_t size, struct gdmabuf_watch *watch);

/*
 * A watch of a parent process is left.  Where the program has closed the context's descriptor, the
 * module ends the watches of the context with the last drop after the next context is opened.
 */
void gdmabuf_watch_drop(const struct gdmabuf_watch *watch);

/* Ends the module's pins that touch the range; a pin in use ends with the last use. */
void gdmabuf_drop(uintptr_t address, size_t size);

/* Ends the module's idle pins, of the host's memory and of GPUs'. */
void gdmabuf_drop_idle(void);

/* The most bytes of idle pins that the module keeps for the process; at first UINT64_MAX: all. */
void gdmabuf_set_limit(enum gdmabuf_memory memory, uint64_t bytes);

struct gdmabuf_counts {
	uint64_t exports, hits; /* hits are of @exports */
	uint64_t evictions, stale;
	uint64_t bytes_pinned;
	uint64_t bytes_idle; /* part of @bytes_pinned: kept, without users */
};

/* Counts of the process's context; zeros without a context. */
void gdmabuf_counts(struct gdmabuf_counts *counts);

#endif
