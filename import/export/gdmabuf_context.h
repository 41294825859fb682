/* SPDX-License-Identifier: Apache-2.0 */
/* What gdmabuf.c and gdmabuf_kept.c share: the process's context of /dev/gdmabuf. */
#ifndef IMPORT_EXPORT_GDMABUF_CONTEXT_H
#define IMPORT_EXPORT_GDMABUF_CONTEXT_H

#include <stdint.h>

#include "util/descriptor.h"

struct gdmabuf_export;
struct gdmabuf_kept;

/* Published whole; one that was replaced stays: other threads may read it still. */
struct gdmabuf_context {
	struct gdmabuf_context *replaced;
	int fd;
	struct descriptor_id id;
	uint32_t process;    /* process_generation() */
	uint32_t number;     /* no two in a process or its ancestors have one */
	size_t page_size[2]; /* by enum gdmabuf_memory; 0: nobody provides it */
	uint32_t slots;
	const _Atomic uint32_t *status;
	struct gdmabuf_kept *kept; /* by slot; gdmabuf_kept.c's, as the next */
	uint32_t kept_slots;	   /* that were ever used */
};

/* The process's own, with a descriptor that the program has not closed; or NULL. */
struct gdmabuf_context *gdmabuf_context_usable(void);

/* gdmabuf_kept.c: the table for a new context; NULL if there is no memory. */
struct gdmabuf_kept *gdmabuf_kept_create(uint32_t slots);

/* Tells a context what gdmabuf_set_limit() was told. */
void gdmabuf_kept_limit(struct gdmabuf_context *ctx);

/* Remembers an export with GDMABUF_KEEP. */
void gdmabuf_kept_add(struct gdmabuf_context *ctx, const struct gdmabuf_export *export);

#endif
