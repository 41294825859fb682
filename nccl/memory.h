/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory: memory that a device of a transport may read and write.
 *
 * Host memory goes to the transport as it is.  A CUDA pointer becomes a dma-buf by
 * climport_register(), whose cache is the only cache: while a registration of an allocation is held,
 * later registrations of any part share the mapping.  A dma-buf of the core's is mapped once for each
 * call, and so is memory for which libclimport has no registration left.
 */
#ifndef NCCL_MEMORY_H
#define NCCL_MEMORY_H

#include "nccl/transport.h"

struct net_memory;

enum net_memory_kind { NET_MEMORY_HOST, NET_MEMORY_CUDA };

/*
 * 0 or a negative errno; -EOPNOTSUPP: the device takes no such memory.  @connection: NULL in the trial of
 * a device.
 */
int net_memory_register(const struct transport *transport, int device, void *connection,
			const void *data, size_t size, enum net_memory_kind kind,
			struct net_memory **memory);
/* @range->fd stays the caller's. */
int net_memory_register_dmabuf(const struct transport *transport, int device, void *connection,
			       const struct transport_range *range, struct net_memory **memory);
void net_memory_unregister(struct net_memory *memory);

/*
 * Before the connection ends: its mappings of CUDA memory end, if the transport maps for each connection
 * alone.  The registrations are still to be unregistered.
 */
void net_memory_forget_connection(const void *connection);

/* In a child of fork(): other threads of the parent's may have been in a call. */
void net_memory_forget(void);

/* The transport's mapping; NULL for NULL. */
void *net_memory_mapping(const struct net_memory *memory);

#endif /* NCCL_MEMORY_H */
