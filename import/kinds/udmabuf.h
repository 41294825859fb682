/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's driver udmabuf: pages of a memfd as a dma-buf.
 *
 * The memfd is sealed against shrinking (F_SEAL_SHRINK), and not against writing.  A dma-buf has at
 * most the bytes of the parameter udmabuf.size_limit_mb, 64 MiB unless changed.  The dma-buf keeps
 * the pages, also after a hole was punched in the memfd.
 */
#ifndef IMPORT_KINDS_UDMABUF_H
#define IMPORT_KINDS_UDMABUF_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the process may open /dev/udmabuf.  Not logged; an open(2). */
bool udmabuf_is_available(void);

/*
 * A dma-buf of whole pages of @memfd: the caller's, close-on-exec; or a negative errno, not logged.
 * -EINVAL: a memfd with other seals, too many bytes, or no memfd.
 */
int udmabuf_create(int memfd, uint64_t offset, uint64_t size);

#endif
