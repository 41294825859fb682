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
#define WATCH_EACH 256	/* calls: a look at the queue of events is a system call */

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
	size_t size = FABRIC_SLOTS * sizeof(*c->headers);

	c->headers = calloc(FABRIC_SLOTS, sizeof(*c->headers));
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

int fabric_connection_open_rail(struct fabric_connection *c, unsigned int number,
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

int fabric_event_error(struct fid_eq *eq)
{
	struct fi_eq_err_entry entry = { 0 };

	if (fi_eq_readerr(eq, &entry, 0) < 0 || !entry.err)
		return -ECONNABORTED;
	return entry.err > 0 ? -entry.err : entry.err;
}

/* -EAGAIN: no event. */
static int connection_read_event(struct fabric_connection *c)
{
	union fabric_cm_event event;
	struct fabric_rail *rail;
	uint32_t kind;
	ssize_t ret = fi_eq_read(c->eq, &kind, &event, sizeof(event), 0);

	if (ret == -FI_EAVAIL)
		return fabric_event_error(c->eq);
	if (ret < 0)
		return (int)ret;
	rail = connection_rail_of(c, event.entry.fid);
	if (kind != FI_CONNECTED || !rail)
		return -ECONNRESET;
	rail->is_connected = true;
	return 0;
}

int fabric_connection_progress(struct fabric_connection *c, bool *done)
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
	union fabric_cm_event event;
	struct fabric_rail *rail;
	uint32_t kind;
	ssize_t ret;

	if (!fabric_device_is_verbs(c->device) || ++c->watches % WATCH_EACH)
		return;
	ret = fi_eq_read(c->eq, &kind, &event, sizeof(event), 0);
	if (ret == -FI_EAVAIL)
		fabric_break(c, fabric_event_error(c->eq));
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
