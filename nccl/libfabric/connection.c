/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a connection, at both ends. */
#include "nccl/libfabric/handshake.h"

#include "nccl/log.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define CLOSE_SECONDS 5 /* how long a closed connection waits for its operations */
#define WATCH_EACH 64	/* calls: a look at the queue of events is a system call */

int fabric_random_id(uint64_t *id)
{
	return getrandom(id, sizeof(*id), 0) == sizeof(*id) ? 0 : -EIO;
}

bool fabric_device_is_verbs(const struct fabric_device *device)
{
	return fabric_device_needs_mappings(device);
}

static int connection_map_headers(struct fabric_connection *c)
{
	size_t count = (size_t)2 * FABRIC_SLOTS, size = count * sizeof(*c->headers);

	c->headers = calloc(count, sizeof(*c->headers));
	if (!c->headers)
		return -ENOMEM;
	if (!fabric_device_needs_mappings(c->device))
		return 0;
	return fi_mr_reg(c->device->lanes[0].domain, c->headers, size, FI_SEND | FI_RECV, 0, 0, 0,
			 &c->headers_mr, NULL);
}

int fabric_connection_new(struct fabric_device *device, bool sends,
			  struct fabric_connection **connection)
{
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
	c->has_ready = fabric_device_is_verbs(device);
	for (int i = 0; i < FABRIC_SLOTS; i++)
		c->requests[i].connection = c;
	err = connection_map_headers(c);
	if (err) {
		fabric_close_connection(c);
		return err;
	}
	*connection = c;
	return 0;
}

int fabric_rail_open(struct fabric_rail *rail, struct fid_eq *eq, struct fi_info *info)
{
	int err;

	fabric_no_inject(info);
	err = fi_endpoint(rail->lane->domain, info, &rail->endpoint, rail);
	if (err)
		return err;
	err = fi_ep_bind(rail->endpoint, &eq->fid, 0);
	if (!err)
		err = fi_ep_bind(rail->endpoint, &rail->lane->cq->fid, FI_SEND | FI_RECV);
	if (!err)
		err = fi_enable(rail->endpoint);
	return err;
}

int fabric_connection_open_rail(struct fabric_connection *c, unsigned int number,
				struct fi_info *info)
{
	struct fabric_rail *rail = &c->rails[number];

	rail->lane = number ? fabric_device_next_lane(c->device) : &c->device->lanes[0];
	return fabric_rail_open(rail, c->device->eq, info);
}

int fabric_event_errno(const struct fi_eq_err_entry *entry)
{
	/* EIO: the stream has ended before the answer. */
	if (!entry->err || entry->err == FI_EIO)
		return -ECONNABORTED;
	return entry->err > 0 ? -entry->err : entry->err;
}

int fabric_event_error(struct fid_eq *eq)
{
	struct fi_eq_err_entry entry = { 0 };

	return fi_eq_readerr(eq, &entry, 0) < 0 ? -ECONNABORTED : fabric_event_errno(&entry);
}

/*
 * A stream says that the peer is gone to whoever reads from the stream: the lanes of the rails that are
 * connected, while others are not.
 */
int fabric_connection_progress(struct fabric_connection *c, bool *done)
{
	struct fabric_events events;

	for (unsigned int i = 0; i < c->rail_count; i++)
		if (c->rails[i].endpoint)
			fabric_lane_progress(c->rails[i].lane);
	fabric_events_read(c, &events);
	*done = events.is_connected;
	/* A peer that has connected may have sent messages before it went. */
	for (unsigned int i = 0; i < c->rail_count && !*done; i++)
		if (events.errors[i])
			return events.errors[i];
	return 0;
}

/*
 * libfabric does not say what becomes of an operation that is posted after the end of its endpoint: over
 * tcp a receive never ends.  So the endpoint is closed, which ends what is posted, and fabric_post()
 * refuses what comes later.  What has arrived stays.
 */
static void connection_end_rail(struct fabric_connection *c, struct fabric_rail *rail, int error)
{
	if (!rail->endpoint)
		return;
	fabric_cancel(rail, error);
	fabric_rail_close(c->device, rail);
	rail->error = error;
}

void fabric_break(struct fabric_connection *c, int error)
{
	if (!c->error)
		c->error = error;
	for (unsigned int i = 0; i < c->rail_count; i++)
		connection_end_rail(c, &c->rails[i], error);
}

/*
 * The end of a rail is in the queue of events, and a receive that is posted later does not tell.  The
 * other rails stay: parts of messages may have arrived there.
 */
void fabric_watch(struct fabric_connection *c)
{
	struct fabric_events events;

	if (++c->watches % WATCH_EACH)
		return;
	fabric_events_read(c, &events);
	for (unsigned int i = 0; i < c->rail_count; i++)
		if (events.errors[i])
			connection_end_rail(c, &c->rails[i], events.errors[i]);
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

static bool connection_request_is_posted(const struct fabric_request *request)
{
	if (connection_operation_is_posted(&request->head) ||
	    connection_operation_is_posted(&request->ready))
		return true;
	for (unsigned int i = 0; i < request->part_count; i++)
		if (connection_operation_is_posted(&request->parts[i]))
			return true;
	return false;
}

/* The device's endpoints make the reads, and stay open: a read that waits for room is posted later. */
static bool connection_read_is_under_way(const struct fabric_operation *read)
{
	enum fabric_state state = atomic_load(&read->state);

	return state == FABRIC_QUEUED || state == FABRIC_POSTED;
}

static bool connection_has_posted(const struct fabric_connection *c)
{
	for (int i = 0; i < FABRIC_SLOTS; i++)
		if (connection_request_is_posted(&c->requests[i]) ||
		    connection_read_is_under_way(&c->flushes[i].head))
			return true;
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

/* Whether reads are under way, which end now that their endpoint is shut. */
static bool connection_break_flushes(struct fabric_connection *c)
{
	bool any = false;

	for (int i = 0; i < FABRIC_SLOTS; i++) {
		struct fabric_operation *read = &c->flushes[i].head;

		if (!connection_read_is_under_way(read))
			continue;
		fabric_flush_break(c->device, read->rail);
		any = true;
	}
	return any;
}

void fabric_close_connection(void *handle)
{
	struct fabric_connection *c = handle;

	if (!fabric_device_is_own(c->device))
		return;
	for (unsigned int i = 0; i < FABRIC_MAX_RAILS; i++) {
		if (c->rails[i].lane)
			fabric_unqueue(&c->rails[i]);
		if (c->rails[i].endpoint)
			fabric_rail_close(c->device, &c->rails[i]);
	}
	if (!connection_drain(c) && !(connection_break_flushes(c) && connection_drain(c))) {
		net_warn("a closed connection has operations left, and keeps its memory");
		return;
	}
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
