/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a connection begins and ends.
 *
 * The connecting process opens an endpoint for each rail, and tells with each connection request
 * (struct hello) which connection and which rail the request is for.  The listener collects the rails
 * of each connection.
 */
#include "nccl/libfabric/fabric.h"
#include "nccl/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define ADDRESS_SIZE 64
#define MAGIC 0x636c696dU /* other transports' handles and requests have another number */
#define PROTOCOL 2	  /* of headers, hellos and parts */
#define CLOSE_SECONDS 5	  /* how long a closed connection waits for its operations */
#define CLOSE_READS 4	  /* in a row without an event: a listener has no requests left */
#define WATCH_EACH 256	  /* calls: a look at the queue of events is a system call */

#define SMALL_TCP 65536 /* bytes of the largest message that rail 0 carries */
#define SMALL_VERBS 8192
#define LEAST_TCP 65536 /* bytes of the smallest part */
#define LEAST_VERBS (1 << 20)
#define SMALL_MOST (1 << 24) /* limits of both */
#define LEAST_LEAST 4096
#define RAILS_TCP 4 /* rails of parts */
#define RAILS_VERBS 1

/* In the core's memory, at the process that connects. */
struct handle {
	uint32_t magic;
	uint32_t address_size;
	uint64_t listener;
	unsigned char address[ADDRESS_SIZE];
	struct fabric_connection *connection; /* being made */
};

static_assert(sizeof(struct handle) <= NCCL_NET_HANDLE_SIZE, "the core's handle");

struct hello {
	uint32_t magic;
	uint16_t protocol;
	uint8_t rail, rail_count;
	uint64_t listener;
	uint64_t connection;
	uint32_t small, least;
};

struct listener {
	struct fabric_device *device;
	uint64_t id;
	struct fid_eq *eq;
	struct fid_pep *endpoint;
	struct fabric_connection *begun; /* connections of which rails are missing */
};

/* An event of a connection, with what the peer said. */
union cm_event {
	struct fi_eq_cm_entry entry;
	char bytes[sizeof(struct fi_eq_cm_entry) + sizeof(struct hello)];
};

static int connection_random_id(uint64_t *id)
{
	return getrandom(id, sizeof(*id), 0) == sizeof(*id) ? 0 : -EIO;
}

static bool connection_is_by_verbs(const struct fabric_device *device)
{
	return fabric_device_needs_mappings(device);
}

static int connection_map_headers(struct fabric_connection *c)
{
	size_t size = FABRIC_SLOTS * sizeof(*c->headers);

	c->headers = calloc(FABRIC_SLOTS, sizeof(*c->headers));
	if (!c->headers)
		return -ENOMEM;
	if (!fabric_device_needs_mappings(c->device))
		return 0;
	return fi_mr_reg(c->device->lanes[0].domain, c->headers, size, FI_SEND | FI_RECV, 0, 0, 0,
			 &c->headers_mr, NULL);
}

static int connection_new(struct fabric_device *device, bool sends,
			  struct fabric_connection **connection)
{
	struct fi_eq_attr attributes = { .wait_obj = FI_WAIT_NONE };
	struct fabric_connection *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	err = fabric_device_get(device);
	if (err) {
		free(c);
		return err;
	}
	c->device = device;
	c->sends = sends;
	for (int i = 0; i < FABRIC_SLOTS; i++)
		c->requests[i].connection = c;
	err = fi_eq_open(device->fabric, &attributes, &c->eq, NULL);
	if (!err)
		err = connection_map_headers(c);
	if (err) {
		fabric_close_connection(c);
		return err;
	}
	*connection = c;
	return 0;
}

/* An enabled endpoint for the rail. */
static int connection_open_rail(struct fabric_connection *c, unsigned int number,
				struct fi_info *info)
{
	struct fabric_rail *rail = &c->rails[number];
	int err;

	fabric_no_inject(info);
	rail->lane = number ? fabric_device_next_lane(c->device) : &c->device->lanes[0];
	err = fi_endpoint(rail->lane->domain, info, &rail->endpoint, NULL);
	if (err)
		return err;
	err = fi_ep_bind(rail->endpoint, &c->eq->fid, 0);
	if (!err)
		err = fi_ep_bind(rail->endpoint, &rail->lane->cq->fid, FI_SEND | FI_RECV);
	if (!err)
		err = fi_enable(rail->endpoint);
	return err;
}

static struct fabric_rail *connection_rail_of(struct fabric_connection *c, const struct fid *fid)
{
	for (unsigned int i = 0; i < c->rail_count; i++)
		if (c->rails[i].endpoint && &c->rails[i].endpoint->fid == fid)
			return &c->rails[i];
	return NULL;
}

static int connection_queue_error(struct fid_eq *eq)
{
	struct fi_eq_err_entry entry = { 0 };

	if (fi_eq_readerr(eq, &entry, 0) < 0 || !entry.err)
		return -ECONNABORTED;
	return entry.err > 0 ? -entry.err : entry.err;
}

/* -EAGAIN: no event. */
static int connection_read_event(struct fabric_connection *c)
{
	union cm_event event;
	struct fabric_rail *rail;
	uint32_t kind;
	ssize_t ret = fi_eq_read(c->eq, &kind, &event, sizeof(event), 0);

	if (ret == -FI_EAVAIL)
		return connection_queue_error(c->eq);
	if (ret < 0)
		return (int)ret;
	rail = connection_rail_of(c, event.entry.fid);
	if (kind != FI_CONNECTED || !rail)
		return -ECONNRESET;
	rail->is_connected = true;
	return 0;
}

/* *done: every rail is connected. */
static int connection_progress(struct fabric_connection *c, bool *done)
{
	int err;

	for (unsigned int i = 0; i < c->rail_count; i++)
		if (c->rails[i].lane && !c->rails[i].is_connected)
			fabric_lane_progress(c->rails[i].lane);
	do
		err = connection_read_event(c);
	while (!err);
	*done = true;
	for (unsigned int i = 0; i < c->rail_count; i++)
		*done = *done && c->rails[i].is_connected;
	return err == -EAGAIN ? 0 : err;
}

void fabric_break(struct fabric_connection *c, int error)
{
	if (c->error)
		return;
	c->error = error;
	for (unsigned int i = 0; i < c->rail_count; i++)
		fi_shutdown(c->rails[i].endpoint, 0);
}

/*
 * An adapter does not tell a receive that the peer is gone, the connection manager does, in the queue
 * of events.  What has arrived stays.  Over tcp the stream tells.
 */
void fabric_watch(struct fabric_connection *c)
{
	union cm_event event;
	struct fabric_rail *rail;
	uint32_t kind;
	ssize_t ret;

	if (!connection_is_by_verbs(c->device) || ++c->watches % WATCH_EACH)
		return;
	ret = fi_eq_read(c->eq, &kind, &event, sizeof(event), 0);
	if (ret == -FI_EAVAIL)
		fabric_break(c, connection_queue_error(c->eq));
	if (ret < 0 || kind != FI_SHUTDOWN)
		return;
	rail = connection_rail_of(c, event.entry.fid);
	if (rail)
		fi_shutdown(rail->endpoint, 0);
}

static struct timespec connection_deadline(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now.tv_sec += CLOSE_SECONDS;
	return now;
}

static bool connection_is_overdue(const struct timespec *deadline)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > deadline->tv_sec ||
	       (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
}

static bool connection_operation_is_posted(const struct fabric_operation *operation)
{
	return atomic_load(&operation->state) == FABRIC_POSTED;
}

static bool connection_has_posted(const struct fabric_connection *c)
{
	for (int i = 0; i < FABRIC_SLOTS; i++) {
		const struct fabric_request *request = &c->requests[i];

		if (connection_operation_is_posted(&request->head))
			return true;
		for (unsigned int j = 0; j < request->part_count; j++)
			if (connection_operation_is_posted(&request->parts[j]))
				return true;
	}
	return false;
}

/* Closed endpoints complete their operations with an error: until then a lane may write to them. */
static bool connection_drain(struct fabric_connection *c)
{
	struct timespec deadline = connection_deadline();

	while (connection_has_posted(c)) {
		for (unsigned int i = 0; i < c->rail_count; i++)
			if (c->rails[i].lane)
				fabric_lane_progress(c->rails[i].lane);
		if (connection_is_overdue(&deadline))
			return false;
		sched_yield();
	}
	return true;
}

void fabric_close_connection(void *handle)
{
	struct fabric_connection *c = handle;

	if (!fabric_device_is_own(c->device))
		return;
	for (unsigned int i = 0; i < FABRIC_MAX_RAILS; i++) {
		if (!c->rails[i].endpoint)
			continue;
		fabric_unqueue(&c->rails[i]);
		fi_close(&c->rails[i].endpoint->fid);
	}
	if (!connection_drain(c)) {
		net_warn("a closed connection has operations left, and keeps its memory");
		return;
	}
	if (c->eq)
		fi_close(&c->eq->fid);
	if (c->headers_mr)
		fi_close(&c->headers_mr->fid);
	fabric_device_put(c->device);
	free(c->headers);
	free(c);
}

int fabric_connection_device(void *connection)
{
	return ((struct fabric_connection *)connection)->device->number;
}

int fabric_listen(int number, void *memory, void **result)
{
	struct fabric_device *device = fabric_device_at(number);
	struct fi_eq_attr attributes = { .wait_obj = FI_WAIT_NONE };
	struct handle *handle = memory;
	struct listener *l;
	size_t size = ADDRESS_SIZE;
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
	err = connection_random_id(&l->id);
	if (!err)
		err = fi_eq_open(device->fabric, &attributes, &l->eq, NULL);
	if (!err)
		err = fi_passive_ep(device->fabric, device->info, &l->endpoint, NULL);
	if (!err)
		err = fi_pep_bind(l->endpoint, &l->eq->fid, 0);
	if (!err)
		err = fi_listen(l->endpoint);
	if (!err)
		err = fi_getname(&l->endpoint->fid, handle->address, &size);
	if (err) {
		fabric_close_listener(l);
		return err;
	}
	handle->magic = MAGIC;
	handle->address_size = (uint32_t)size;
	handle->listener = l->id;
	*result = l;
	return 0;
}

/* The number of an interface, which names a link-local address's network, is this machine's own. */
static void connection_set_scope(const struct fi_info *info)
{
	const struct sockaddr_in6 *own = info->src_addr;
	struct sockaddr_in6 *to = info->dest_addr;

	if (info->dest_addrlen >= sizeof(*to) && to->sin6_family == AF_INET6 && own &&
	    own->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&to->sin6_addr))
		to->sin6_scope_id = own->sin6_scope_id;
}

/* The device's own information, with the listener's address as the destination. */
static struct fi_info *connection_info_to(const struct fabric_device *device,
					  const struct handle *handle)
{
	struct fi_info *info = fabric_library.dupinfo(device->info);

	if (!info)
		return NULL;
	free(info->dest_addr);
	info->dest_addr = malloc(handle->address_size);
	if (!info->dest_addr) {
		fabric_library.freeinfo(info);
		return NULL;
	}
	memcpy(info->dest_addr, handle->address, handle->address_size);
	info->dest_addrlen = handle->address_size;
	connection_set_scope(info);
	return info;
}

static void connection_choose(struct fabric_connection *c)
{
	bool verbs = connection_is_by_verbs(c->device);

	c->rail_count = 1 + (unsigned int)fabric_setting("CLIMPORT_NET_RAILS",
							 verbs ? RAILS_VERBS : RAILS_TCP, 1,
							 FABRIC_MAX_RAILS - 1);
	c->small = fabric_setting("CLIMPORT_NET_SMALL", verbs ? SMALL_VERBS : SMALL_TCP, 0,
				  SMALL_MOST);
	c->least = fabric_setting("CLIMPORT_NET_PART", verbs ? LEAST_VERBS : LEAST_TCP, LEAST_LEAST,
				  SMALL_MOST);
}

static int connection_connect(struct fabric_connection *c, const struct handle *handle)
{
	struct hello hello = {
		.magic = MAGIC,
		.protocol = PROTOCOL,
		.rail_count = (uint8_t)c->rail_count,
		.listener = handle->listener,
		.connection = c->id,
		.small = (uint32_t)c->small,
		.least = (uint32_t)c->least,
	};
	struct fi_info *info = connection_info_to(c->device, handle);
	int err = 0;

	if (!info)
		return -ENOMEM;
	for (unsigned int i = 0; i < c->rail_count && !err; i++) {
		hello.rail = (uint8_t)i;
		err = connection_open_rail(c, i, info);
		if (!err)
			err = fi_connect(c->rails[i].endpoint, info->dest_addr, &hello,
					 sizeof(hello));
	}
	fabric_library.freeinfo(info);
	return err;
}

static int connection_begin(struct fabric_device *device, struct handle *handle)
{
	struct fabric_connection *c;
	int err = connection_new(device, true, &c);

	if (err)
		return err;
	connection_choose(c);
	err = connection_random_id(&c->id);
	if (!err)
		err = connection_connect(c, handle);
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
	struct handle *handle = memory;
	bool done = false;
	int err = 0;

	if (!device || handle->magic != MAGIC || handle->address_size > ADDRESS_SIZE)
		return -EINVAL;
	if (!handle->connection)
		err = connection_begin(device, handle);
	if (err)
		return err;
	err = connection_progress(handle->connection, &done);
	if (err)
		fabric_close_connection(handle->connection);
	else if (done)
		*result = handle->connection;
	if (err || done)
		handle->connection = NULL;
	return err;
}

static bool listener_takes_hello(const struct listener *l, const struct hello *hello)
{
	return hello->magic == MAGIC && hello->protocol == PROTOCOL && hello->listener == l->id &&
	       hello->rail_count >= 2 && hello->rail_count <= FABRIC_MAX_RAILS &&
	       hello->rail < hello->rail_count && hello->small <= SMALL_MOST &&
	       hello->least >= LEAST_LEAST;
}

static int listener_find(struct listener *l, const struct hello *hello,
			 struct fabric_connection **connection)
{
	struct fabric_connection *c = l->begun;
	int err;

	while (c && c->id != hello->connection)
		c = c->next;
	if (!c) {
		err = connection_new(l->device, false, &c);
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
static int listener_accept_rail(struct listener *l, const struct hello *hello, struct fi_info *info)
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
	err = connection_open_rail(c, hello->rail, info);
	if (err && !rail->endpoint)
		listener_reject(l, info);
	if (!err)
		err = fi_accept(rail->endpoint, NULL, 0);
	if (err && rail->endpoint) {
		fi_close(&rail->endpoint->fid);
		rail->endpoint = NULL;
	}
	return err;
}

/* A stranger's request is refused and is no error of the listener. */
static int listener_answer(struct listener *l, const union cm_event *event, size_t size)
{
	struct hello hello;

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
	union cm_event event;
	uint32_t kind;
	ssize_t ret = fi_eq_read(l->eq, &kind, &event, sizeof(event), 0);
	int err = 0;

	if (ret == -FI_EAVAIL) {
		net_info("a connection request failed: %s",
			 net_error_text(connection_queue_error(l->eq)));
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

/*
 * A request that nobody reads would keep its socket.  A request comes into the queue some reads after
 * its socket.
 */
static void listener_reject_all(struct listener *l)
{
	int left = CLOSE_READS;

	while (l->endpoint && left)
		left = listener_read_event(l, false) ? left - 1 : CLOSE_READS;
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
		err = connection_progress(c, &done);
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
	return 0;
}
