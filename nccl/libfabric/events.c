/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of all connections of a device are in one queue: a queue for each connection would take
 * four descriptors.  Whoever reads the queue marks the rails that the events are of.  An endpoint closes
 * under the lock of the queue, so that no event in a reader's hand is of a closed endpoint.
 */
#include "nccl/libfabric/handshake.h"

#include <errno.h>

/*
 * At the end of a stream the provider tcp reports errno, which nobody has set: EAGAIN would mean that
 * there is more to come (libfabric 1.17 and 2.1).
 */
ssize_t fabric_event_read(struct fid_eq *eq, uint32_t *kind, union fabric_cm_event *event)
{
	errno = 0;
	return fi_eq_read(eq, kind, event, sizeof(*event), 0);
}

int fabric_events_open(struct fabric_device *device)
{
	struct fi_eq_attr attributes = { .wait_obj = FI_WAIT_NONE };

	return fi_eq_open(device->fabric, &attributes, &device->eq, NULL);
}

void fabric_events_close(struct fabric_device *device)
{
	if (device->eq)
		fi_close(&device->eq->fid);
	device->eq = NULL;
}

/* False: there is no error. */
static bool events_read_error(struct fid_eq *eq)
{
	struct fi_eq_err_entry entry = { 0 };
	struct fabric_rail *rail;

	if (fi_eq_readerr(eq, &entry, 0) < 0)
		return false;
	rail = entry.fid ? entry.fid->context : NULL;
	if (rail && !rail->error)
		rail->error = fabric_event_errno(&entry);
	return true;
}

/* False: there is no event. */
static bool events_read(struct fid_eq *eq)
{
	union fabric_cm_event event;
	struct fabric_rail *rail;
	uint32_t kind;
	ssize_t ret = fabric_event_read(eq, &kind, &event);

	if (ret == -FI_EAVAIL)
		return events_read_error(eq);
	if (ret < 0)
		return false;
	rail = event.entry.fid->context;
	if (kind == FI_CONNECTED)
		rail->is_connected = true;
	else if (!rail->error)
		rail->error = -ECONNRESET;
	return true;
}

void fabric_events_read(struct fabric_connection *c, struct fabric_events *events)
{
	struct fabric_device *device = c->device;

	*events = (struct fabric_events){ .is_connected = true };
	pthread_mutex_lock(&device->eq_lock);
	while (events_read(device->eq))
		;
	for (unsigned int i = 0; i < c->rail_count; i++) {
		struct fabric_rail *rail = &c->rails[i];

		events->is_connected = events->is_connected && rail->is_connected;
		events->errors[i] = rail->error;
	}
	pthread_mutex_unlock(&device->eq_lock);
}

void fabric_rail_close(struct fabric_device *device, struct fabric_rail *rail)
{
	pthread_mutex_lock(&device->eq_lock);
	/* A process that was forked has the socket, too, and close(2) alone would not end the stream. */
	fi_shutdown(rail->endpoint, 0);
	fi_close(&rail->endpoint->fid);
	rail->endpoint = NULL;
	pthread_mutex_unlock(&device->eq_lock);
}
