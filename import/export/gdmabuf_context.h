/* SPDX-License-Identifier: Apache-2.0 */
/* The process's context of /dev/gdmabuf, which gdmabuf.c and gdmabuf_kept.c share. */
#ifndef IMPORT_EXPORT_GDMABUF_CONTEXT_H
#define IMPORT_EXPORT_GDMABUF_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/descriptor.h"

struct gdmabuf_export;
struct gdmabuf_kept;

/*
 * Published whole.  A replaced context without uses unmaps its status page, and with the page goes
 * the module's context.  The structure stays, as other threads may still read the structure.
 */
struct gdmabuf_context {
	struct gdmabuf_context *replaced;
	struct descriptor_own device;
	uint32_t number;     /* unique among a process and its ancestors */
	bool can_watch;	     /* host memory: GDMABUF_WATCH_HOST */
	size_t page_size[2]; /* by enum gdmabuf_memory; 0: no provider */
	uint32_t slots;
	const _Atomic uint32_t *status;
	uint64_t uses;		   /* watches, and exports that were ever made; gdmabuf.c's */
	struct gdmabuf_kept *kept; /* by slot; gdmabuf_kept.c's, as is @kept_slots */
	uint32_t kept_slots;	   /* ever used */
};

/* The context, or NULL: none, the parent's, or closed by the program. */
struct gdmabuf_context *gdmabuf_context_usable(void);

/*
 * The context, opened if there is none.  Logs a fault.  The status page is mapped at least until
 * gdmabuf_context_end_use().
 */
int gdmabuf_context_get(struct gdmabuf_context **out);

/* Ends a use of the process's own context. */
void gdmabuf_context_end_use(struct gdmabuf_context *ctx);

/* The whole pages around the range.  False: no such pages. */
bool gdmabuf_whole_pages(uintptr_t address, size_t size, size_t page, uintptr_t *first,
			 size_t *length);

/* gdmabuf_kept.c: a table for a new context; NULL: no memory. */
struct gdmabuf_kept *gdmabuf_kept_create(uint32_t slots);

/* Tells the module the limit of gdmabuf_set_limit(). */
void gdmabuf_kept_limit(struct gdmabuf_context *ctx);

/* Remembers an export with GDMABUF_KEEP. */
void gdmabuf_kept_add(struct gdmabuf_context *ctx, const struct gdmabuf_export *export);

#endif
