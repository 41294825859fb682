/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a connection that listens, and receives. */
#include "nccl/libfabric/half_open.h"
#include "nccl/libfabric/handshake.h"

#include "nccl/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define HALF_OPEN_MOST 64 /* peers of a listener; older ones are dropped */
#define CLOSE_ROUNDS 64	  /* in which a listener that closes gets rid of its peers */
/* A look for a descriptor is for so many calls; so many looks in vain are a shortage that stays. */
#define LOOK_CALLS 256
#define SHORTAGE_LOOKS 8

struct listener {
	struct fabric_device *device;
	uint64_t id;
	struct fid_eq *eq;
	struct fid_pep *endpoint;
	unsigned char address[FABRIC_ADDRESS_SIZE];
	struct half_open half_open;	 /* over tcp */
	struct fabric_connection *begun; /* connections of which rails are missing */
	unsigned int calls, shortages;	 /* of listener_check_descriptors() */
};

int fabric_listen(int number, void *memory, void **result)
{
	struct fabric_device *device = fabric_device_at(number);
	struct fi_eq_attr attributes = { .wait_obj = FI_WAIT_NONE };
	struct fabric_handle *handle = memory;
	struct listener *l;
	size_t size = FABRIC_ADDRESS_SIZE;
	int err;

	if (!device)
		return -EINVAL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	err = fabric_device_get(device);
	if (err) {
		free(l);
		return err;
	}
	l->device = device;
	err = fabric_random_id(&l->id);
	if (!err)
		err = fi_eq_open(device->fabric, &attributes, &l->eq, NULL);
	if (!err)
		err = fi_passive_ep(device->fabric, device->info, &l->endpoint, NULL);
	if (!err)
		err = fi_pep_bind(l->endpoint, &l->eq->fid, 0);
	if (!err)
		err = fi_listen(l->endpoint);
	if (!err)
		err = fi_getname(&l->endpoint->fid, l->address, &size);
	if (err) {
		fabric_close_listener(l);
		return err;
	}
	if (!fabric_device_is_verbs(device))
		half_open_begin(&l->half_open, l->address, size, sizeof(struct fabric_hello));
	memcpy(handle->address, l->address, size);
	handle->magic = FABRIC_MAGIC;
	handle->address_size = (uint32_t)size;
	handle->listener = l->id;
	*result = l;
	return 0;
}

static bool listener_takes_hello(const struct listener *l, const struct fabric_hello *hello)
{
	return hello->magic == FABRIC_MAGIC && hello->protocol == FABRIC_PROTOCOL &&
	       hello->listener == l->id && hello->rail_count >= 2 &&
	       hello->rail_count <= FABRIC_MAX_RAILS && hello->rail < hello->rail_count &&
	       hello->small <= FABRIC_SMALL_MOST && hello->least >= FABRIC_LEAST_LEAST;
}

static int listener_find(struct listener *l, const struct fabric_hello *hello,
			 struct fabric_connection **connection)
{
	struct fabric_connection *c = l->begun;
	int err;

	while (c && c->id != hello->connection)
		c = c->next;
	if (!c) {
		err = fabric_connection_new(l->device, false, &c);
		if (err)
			return err;
		c->id = hello->connection;
		c->rail_count = hello->rail_count;
		c->small = hello->small;
		c->least = hello->least;
		c->next = l->begun;
		l->begun = c;
	}
	*connection = c;
	return 0;
}

static void listener_reject(struct listener *l, struct fi_info *info)
{
	fi_reject(l->endpoint, info->handle, NULL, 0);
}

/* Who asks hears of a failure: without an endpoint a reject says so, else the end of the endpoint. */
static int listener_accept_rail(struct listener *l, const struct fabric_hello *hello,
				struct fi_info *info)
{
	struct fabric_connection *c;
	struct fabric_rail *rail;
	int err = listener_find(l, hello, &c);

	if (err) {
		listener_reject(l, info);
		return err;
	}
	rail = &c->rails[hello->rail];
	if (hello->rail >= c->rail_count || rail->endpoint) {
		net_info("a connection request for a rail that is there is refused");
		listener_reject(l, info);
		return 0;
	}
	err = fabric_connection_open_rail(c, hello->rail, info);
	if (err && !rail->endpoint)
		listener_reject(l, info);
	if (!err)
		err = fi_accept(rail->endpoint, NULL, 0);
	if (err && rail->endpoint)
		fabric_rail_close(l->device, rail);
	return err;
}

/* A stranger's request is refused and is no error of the listener. */
static int listener_answer(struct listener *l, const union fabric_cm_event *event, size_t size)
{
	struct fabric_hello hello;

	memcpy(&hello, event->entry.data, sizeof(hello));
	if (size >= sizeof(event->entry) + sizeof(hello) && listener_takes_hello(l, &hello))
		return listener_accept_rail(l, &hello, event->entry.info);
	net_info("a connection request of a stranger is refused");
	listener_reject(l, event->entry.info);
	return 0;
}

/* -EAGAIN: no event. */
static int listener_read_event(struct listener *l, bool accepts)
{
	union fabric_cm_event event;
	uint32_t kind;
	ssize_t ret = fabric_event_read(l->eq, &kind, &event);
	int err = 0;

	if (ret == -FI_EAVAIL) {
		net_info("a connection request failed: %s",
			 net_error_text(fabric_event_error(l->eq)));
		return 0;
	}
	if (ret < 0)
		return (int)ret;
	if (kind != FI_CONNREQ)
		return 0;
	if (accepts)
		err = listener_answer(l, &event, (size_t)ret);
	else
		listener_reject(l, event.entry.info);
	fabric_library.freeinfo(event.entry.info);
	return err;
}

/* A request that nobody reads would keep its socket.  Who is not half open has sent a request. */
static void listener_reject_all(struct listener *l)
{
	bool is_left = l->endpoint;

	for (int i = 0; is_left && i < CLOSE_ROUNDS; i++) {
		is_left = half_open_end(&l->half_open);
		while (!listener_read_event(l, false))
			;
	}
}

void fabric_close_listener(void *handle)
{
	struct listener *l = handle;
	struct fabric_connection *next;

	if (!fabric_device_is_own(l->device))
		return;
	for (struct fabric_connection *c = l->begun; c; c = next) {
		next = c->next;
		fabric_close_connection(c);
	}
	listener_reject_all(l);
	if (l->endpoint)
		fi_close(&l->endpoint->fid);
	if (l->eq)
		fi_close(&l->eq->fid);
	if (l->half_open.descriptors)
		closedir(l->half_open.descriptors);
	fabric_device_put(l->device);
	free(l);
}

static void listener_remove(struct listener *l, struct fabric_connection *connection)
{
	struct fabric_connection **at = &l->begun;

	while (*at != connection)
		at = &(*at)->next;
	*at = connection->next;
	connection->next = NULL;
}

/*
 * -EMFILE or -ENFILE: no descriptor is left.  The provider tcp tells nobody that a socket is not accepted
 * for this reason, and both ends would wait for ever.
 */
static int listener_check_descriptors(struct listener *l)
{
	int fd, err;

	if (fabric_device_is_verbs(l->device) || ++l->calls % LOOK_CALLS)
		return 0;
	half_open_limit(&l->half_open, HALF_OPEN_MOST);
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		l->shortages = 0;
		return 0;
	}
	err = -errno;
	/* A shortage that stays: nobody is waited for any more. */
	if (++l->shortages == SHORTAGE_LOOKS - 1)
		half_open_limit(&l->half_open, 0);
	return l->shortages < SHORTAGE_LOOKS ? 0 : err;
}

int fabric_accept(void *handle, void **result)
{
	struct listener *l = handle;
	struct fabric_connection *next;
	bool done;
	int err;

	do
		err = listener_read_event(l, true);
	while (!err);
	if (err != -EAGAIN)
		return err;
	for (struct fabric_connection *c = l->begun; c; c = next) {
		next = c->next;
		err = fabric_connection_progress(c, &done);
		if (!err && !done)
			continue;
		listener_remove(l, c);
		if (err) {
			fabric_close_connection(c);
			return err;
		}
		*result = c;
		return 0;
	}
	return listener_check_descriptors(l);
}
