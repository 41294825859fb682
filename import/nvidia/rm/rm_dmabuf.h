/* SPDX-License-Identifier: Apache-2.0 */
/* Which dma-bufs a GPU of NVIDIA's can be given. */
#ifndef IMPORT_NVIDIA_RM_RM_DMABUF_H
#define IMPORT_NVIDIA_RM_RM_DMABUF_H

#include <stddef.h>

/*
 * 0 if the first @size bytes of a dma-buf are memory of the host.  Or -EOPNOTSUPP: not known to be;
 * -EBADF: no dma-buf; -ERANGE: the dma-buf is smaller.  Logged.
 */
int rm_dmabuf_check(int dmabuf, size_t size);

#endif
