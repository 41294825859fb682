/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of a connection say to each other before the first message.
 *
 * A listener's handle goes to the connecting process by the core.  The connecting process opens an
 * endpoint for each rail, and tells with each connection request (struct fabric_hello) which
 * connection and which rail the request is for.  The listener collects the rails of each connection.
 */
#ifndef NCCL_LIBFABRIC_HANDSHAKE_H
#define NCCL_LIBFABRIC_HANDSHAKE_H

#include "nccl/libfabric/fabric.h"

#define FABRIC_ADDRESS_SIZE 64
#define FABRIC_MAGIC 0x636c696dU /* other transports' handles and requests have another number */
#define FABRIC_PROTOCOL 3	 /* of headers, hellos, parts and ready messages */

#define FABRIC_SMALL_MOST (1 << 24) /* limits of small and least */
#define FABRIC_LEAST_LEAST 4096

/* In the core's memory, at the process that connects. */
struct fabric_handle {
	uint32_t magic;
	uint32_t address_size;
	uint64_t listener;
	unsigned char address[FABRIC_ADDRESS_SIZE];
	struct fabric_connection *connection; /* being made */
};

static_assert(sizeof(struct fabric_handle) <= NCCL_NET_HANDLE_SIZE, "the core's handle");

struct fabric_hello {
	uint32_t magic;
	uint16_t protocol;
	uint8_t rail, rail_count;
	uint64_t listener;
	uint64_t connection;
	uint32_t small, least;
};

/* An event of a connection, with what the peer said. */
union fabric_cm_event {
	struct fi_eq_cm_entry entry;
	char bytes[sizeof(struct fi_eq_cm_entry) + sizeof(struct fabric_hello)];
};

/* connection.c */
int fabric_random_id(uint64_t *id);
bool fabric_device_is_verbs(const struct fabric_device *device);
/* Without rails.  A user of the device until fabric_close_connection(). */
int fabric_connection_new(struct fabric_device *device, bool sends,
			  struct fabric_connection **connection);
/* An enabled endpoint for the rail.  After a failure the rail may have an endpoint. */
int fabric_connection_open_rail(struct fabric_connection *c, unsigned int number,
				struct fi_info *info);
/* Likewise on @rail->lane, with the events in @eq. */
int fabric_rail_open(struct fabric_rail *rail, struct fid_eq *eq, struct fi_info *info);
/* *done: every rail is connected. */
int fabric_connection_progress(struct fabric_connection *c, bool *done);
/* The error in front of the queue of events, as a negative errno. */
int fabric_event_error(struct fid_eq *eq);
int fabric_event_errno(const struct fi_eq_err_entry *entry);

/* What the events so far say of a connection. */
struct fabric_events {
	bool is_connected;	      /* every rail */
	int errors[FABRIC_MAX_RAILS]; /* of each rail: 0 or a negative errno */
};

/* events.c */
int fabric_events_open(struct fabric_device *device);
void fabric_events_close(struct fabric_device *device);
/* As fi_eq_read(3). */
ssize_t fabric_event_read(struct fid_eq *eq, uint32_t *kind, union fabric_cm_event *event);
void fabric_events_read(struct fabric_connection *c, struct fabric_events *events);
/*
 * Closes the endpoint of a connection's rail, of which no operation is queued.  Operations that are
 * posted end: those that are complete as they are, the others with an error.
 */
void fabric_rail_close(struct fabric_device *device, struct fabric_rail *rail);

/* connect.c: the device's own information, with @address as the destination; NULL: no memory. */
struct fi_info *fabric_info_to(const struct fabric_device *device, const void *address,
			       size_t size);

#endif /* NCCL_LIBFABRIC_HANDSHAKE_H */
