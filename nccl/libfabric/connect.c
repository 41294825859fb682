/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a connection that connects, and sends. */
#include "nccl/libfabric/handshake.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_TCP 65536 /* bytes of the largest message that rail 0 carries */
#define SMALL_VERBS 8192
#define LEAST_TCP 65536 /* bytes of the smallest part */
#define LEAST_VERBS (1 << 20)
#define RAILS_TCP 4 /* rails of parts */
#define RAILS_VERBS 1

/* The number of an interface, which names a link-local address's network, is this machine's own. */
static void connect_set_scope(const struct fi_info *info)
{
	const struct sockaddr_in6 *own = info->src_addr;
	struct sockaddr_in6 *to = info->dest_addr;

	if (info->dest_addrlen >= sizeof(*to) && to->sin6_family == AF_INET6 && own &&
	    own->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&to->sin6_addr))
		to->sin6_scope_id = own->sin6_scope_id;
}

struct fi_info *fabric_info_to(const struct fabric_device *device, const void *address, size_t size)
{
	struct fi_info *info = fabric_library.dupinfo(device->info);

	if (!info)
		return NULL;
	free(info->dest_addr);
	info->dest_addr = malloc(size);
	if (!info->dest_addr) {
		fabric_library.freeinfo(info);
		return NULL;
	}
	memcpy(info->dest_addr, address, size);
	info->dest_addrlen = size;
	connect_set_scope(info);
	return info;
}

static void connect_choose(struct fabric_connection *c)
{
	bool verbs = fabric_device_is_verbs(c->device);

	c->rail_count = 1 + (unsigned int)fabric_setting("CLIMPORT_NET_RAILS",
							 verbs ? RAILS_VERBS : RAILS_TCP, 1,
							 FABRIC_MAX_RAILS - 1);
	c->small = fabric_setting("CLIMPORT_NET_SMALL", verbs ? SMALL_VERBS : SMALL_TCP, 0,
				  FABRIC_SMALL_MOST);
	c->least = fabric_setting("CLIMPORT_NET_PART", verbs ? LEAST_VERBS : LEAST_TCP,
				  FABRIC_LEAST_LEAST, FABRIC_SMALL_MOST);
}

static int connect_rails(struct fabric_connection *c, const struct fabric_handle *handle)
{
	struct fabric_hello hello = {
		.magic = FABRIC_MAGIC,
		.protocol = FABRIC_PROTOCOL,
		.rail_count = (uint8_t)c->rail_count,
		.listener = handle->listener,
		.connection = c->id,
		.small = (uint32_t)c->small,
		.least = (uint32_t)c->least,
	};
	struct fi_info *info = fabric_info_to(c->device, handle->address, handle->address_size);
	int err = 0;

	if (!info)
		return -ENOMEM;
	for (unsigned int i = 0; i < c->rail_count && !err; i++) {
		hello.rail = (uint8_t)i;
		err = fabric_connection_open_rail(c, i, info);
		if (!err)
			err = fi_connect(c->rails[i].endpoint, info->dest_addr, &hello,
					 sizeof(hello));
	}
	fabric_library.freeinfo(info);
	return err;
}

static int connect_begin(struct fabric_device *device, struct fabric_handle *handle)
{
	struct fabric_connection *c;
	int err = fabric_connection_new(device, true, &c);

	if (err)
		return err;
	connect_choose(c);
	err = fabric_random_id(&c->id);
	if (!err)
		err = connect_rails(c, handle);
	if (err) {
		fabric_close_connection(c);
		return err;
	}
	handle->connection = c;
	return 0;
}

int fabric_connect(int number, void *memory, void **result)
{
	struct fabric_device *device = fabric_device_at(number);
	struct fabric_handle *handle = memory;
	bool done = false;
	int err = 0;

	if (!device || handle->magic != FABRIC_MAGIC || handle->address_size > FABRIC_ADDRESS_SIZE)
		return -EINVAL;
	if (!handle->connection)
		err = connect_begin(device, handle);
	if (err)
		return err;
	err = fabric_connection_progress(handle->connection, &done);
	if (err)
		fabric_close_connection(handle->connection);
	else if (done)
		*result = handle->connection;
	if (err || done)
		handle->connection = NULL;
	return err;
}
