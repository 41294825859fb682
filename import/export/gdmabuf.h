/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel module gdmabuf: ranges of this process as dma-bufs, and watches of its host memory
 * (kmod/).
 *
 * A process has one context, opened at the first use.  A child after fork() opens a context, and so
 * does a process that has closed the context's descriptor.  The older context goes with its last
 * watch.
 * Functions return 0 or a negative errno, logged, may sleep, and be called from any thread.
 */
#ifndef IMPORT_EXPORT_GDMABUF_H
#define IMPORT_EXPORT_GDMABUF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct export_range;

/* The GPU memory of a CUDA device pointer, or host memory. */
enum gdmabuf_memory { GDMABUF_MEMORY_HOST, GDMABUF_MEMORY_GPU };

/*
 * Whether the process can use the module; at most an open(2).  0; -EMFILE, -ENFILE, -ENOMEM: not
 * now; -ENXIO: no module; -EACCES: the device may not be opened.  Not logged.
 */
int gdmabuf_probe(void);

/* The same, and true if not now. */
bool gdmabuf_is_available(void);

/*
 * Exports [@address, @address + @size), rounded to whole pages.  @is_read_only: host memory alone.
 * Errors as in <CL/climport.h>, and -EOPNOTSUPP if nobody provides GPU memory.
 */
int gdmabuf_export(enum gdmabuf_memory memory, uintptr_t address, size_t size, bool is_read_only,
		   struct export_range *range);

struct gdmabuf_context;

/* A watch of host memory: pins nothing. */
struct gdmabuf_watch {
	struct gdmabuf_context *context;
	uint32_t slot, generation;
	/* Reads @generation while current.  The process can read it for ever, a child cannot. */
	const _Atomic uint32_t *status;
};

/*
 * Watches the whole pages around the range: the word changes before the call returns that takes a
 * page away from the address.  Errors as gdmabuf_probe(); -EDQUOT: too many watches; -EINVAL: no
 * range; -EFAULT: no address of a process.
 */
int gdmabuf_watch_begin(uintptr_t address, size_t size, struct gdmabuf_watch *watch);

/* A load. */
bool gdmabuf_watch_is_current(const struct gdmabuf_watch *watch);

/*
 * A watch of a parent process is left.  Where the program has closed the context's descriptor, the
 * module ends the watches of the context with the last of them, after the next context is opened.
 */
void gdmabuf_watch_end(const struct gdmabuf_watch *watch);

#endif
