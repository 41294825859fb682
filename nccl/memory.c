/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/memory.h"
#include "CL/climport.h"
#include "nccl/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A mapping, shared by all who registered a part of the allocation. */
struct net_memory {
	struct net_memory *next; /* in memory_allocations; of CUDA memory alone */
	const struct transport *transport;
	int device;
	void *connection; /* if the transport maps for each connection alone */
	int users;
	void *mapping;
	bool is_orphan; /* the connection has ended, and the mapping with it */
	struct climport_registration registration; /* id 0: none */
};

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static struct net_memory *memory_allocations;

static int memory_make(const struct transport *transport, int device, void *connection,
		       const struct transport_range *range, struct net_memory **memory)
{
	struct net_memory *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return -ENOMEM;
	new->transport = transport;
	new->device = device;
	new->connection = transport->maps_alone ? connection : NULL;
	new->users = 1;
	err = transport->map(device, connection, range, &new->mapping);
	if (err) {
		free(new);
		return err;
	}
	*memory = new;
	return 0;
}

static struct net_memory *memory_find_allocation(const struct transport *transport, int device,
						 const void *connection, uint64_t id)
{
	struct net_memory *m = memory_allocations;

	if (!transport->maps_alone)
		connection = NULL;
	while (m && (m->is_orphan || m->transport != transport || m->device != device ||
		     m->connection != connection || m->registration.id != id))
		m = m->next;
	return m;
}

static void memory_remove_allocation(struct net_memory *memory)
{
	struct net_memory **at = &memory_allocations;

	while (*at != memory)
		at = &(*at)->next;
	*at = memory->next;
}

/* Takes the registration over, also on failure. */
static int memory_get_allocation(const struct transport *transport, int device, void *connection,
				 struct climport_registration *registration,
				 struct net_memory **memory)
{
	const struct transport_range range = {
		.base = registration->base,
		.size = registration->length,
		.fd = registration->fd,
		.offset = registration->offset,
	};
	struct net_memory *found;
	int err = 0;

	pthread_mutex_lock(&memory_lock);
	found = memory_find_allocation(transport, device, connection, registration->id);
	if (found) {
		found->users++;
		climport_unregister(registration);
	} else {
		err = memory_make(transport, device, connection, &range, &found);
		if (err) {
			climport_unregister(registration);
		} else {
			found->registration = *registration;
			found->next = memory_allocations;
			memory_allocations = found;
		}
	}
	pthread_mutex_unlock(&memory_lock);
	if (!err)
		*memory = found;
	return err;
}

/* A dma-buf of the range, for this registration alone. */
static int memory_map_range(const struct transport *transport, int device, void *connection,
			    const void *data, size_t size, struct net_memory **memory)
{
	struct transport_range range = { .base = data, .size = size };
	struct climport_dmabuf dmabuf;
	int err = climport_export_dmabuf(data, size, 0, &dmabuf, sizeof(dmabuf));

	if (err)
		return err;
	range.fd = dmabuf.fd;
	range.offset = dmabuf.offset;
	err = memory_make(transport, device, connection, &range, memory);
	close(dmabuf.fd);
	return err;
}

/* Several allocations side by side, or more allocations than libclimport has registrations. */
static bool memory_has_no_registration(int err)
{
	return err == -ERANGE || err == -ENOSPC;
}

static int memory_map_cuda(const struct transport *transport, int device, void *connection,
			   const void *data, size_t size, struct net_memory **memory)
{
	struct climport_registration registration;
	int err = climport_register(data, size, 0, &registration, sizeof(registration));

	if (memory_has_no_registration(err))
		return memory_map_range(transport, device, connection, data, size, memory);
	if (err)
		return err;
	if (registration.fd < 0) {
		climport_unregister(&registration);
		return -EOPNOTSUPP;
	}
	return memory_get_allocation(transport, device, connection, &registration, memory);
}

int net_memory_register(const struct transport *transport, int device, void *connection,
			const void *data, size_t size, enum net_memory_kind kind,
			struct net_memory **memory)
{
	const struct transport_range host = { .base = data, .size = size, .fd = -1 };
	int err;

	if (kind == NET_MEMORY_HOST)
		return memory_make(transport, device, connection, &host, memory);
	if (!transport->device(device)->takes_dmabufs)
		return -EOPNOTSUPP;
	err = memory_map_cuda(transport, device, connection, data, size, memory);
	if (err)
		net_warn("CUDA memory at %p, %zu bytes, is not registered: %s", data, size,
			 net_error_text(err));
	return err;
}

int net_memory_register_dmabuf(const struct transport *transport, int device, void *connection,
			       const struct transport_range *range, struct net_memory **memory)
{
	if (!transport->device(device)->takes_dmabufs)
		return -EOPNOTSUPP;
	return memory_make(transport, device, connection, range, memory);
}

void net_memory_unregister(struct net_memory *memory)
{
	if (!memory)
		return;
	pthread_mutex_lock(&memory_lock);
	if (--memory->users) {
		pthread_mutex_unlock(&memory_lock);
		return;
	}
	if (memory->registration.id)
		memory_remove_allocation(memory);
	pthread_mutex_unlock(&memory_lock);
	if (!memory->is_orphan)
		memory->transport->unmap(memory->mapping);
	climport_unregister(&memory->registration);
	free(memory);
}

void net_memory_forget(void)
{
	pthread_mutex_init(&memory_lock, NULL);
}

void net_memory_forget_connection(const void *connection)
{
	pthread_mutex_lock(&memory_lock);
	for (struct net_memory *m = memory_allocations; m; m = m->next) {
		if (m->is_orphan || m->connection != connection)
			continue;
		m->transport->unmap(m->mapping);
		m->is_orphan = true;
	}
	pthread_mutex_unlock(&memory_lock);
}

void *net_memory_mapping(const struct net_memory *memory)
{
	return memory && !memory->is_orphan ? memory->mapping : NULL;
}
