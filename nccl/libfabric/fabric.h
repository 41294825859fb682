/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over libfabric's connected endpoints (FI_EP_MSG), by the providers verbs and tcp.
 *
 *   library     libfabric.so.1, loaded by name
 *   device      a network interface that libfabric offers
 *   lane        a domain and a completion queue of a device; a thread may drive the lane
 *   operation   a send or a receive on an endpoint
 *   rail        an endpoint of a connection
 *   connection  the rails between two processes, and the requests of the core
 *
 * Rail 0 of a connection carries a header for each message, and the data of small messages behind
 * the header.  The callers drive the lane of rail 0, so that a small message meets no other thread.
 * Larger messages are cut into parts, which the other rails carry at once.  One TCP stream is
 * limited by one processor at each end, so over tcp the other rails are on lanes with threads.
 *
 * A header tells the size.  A receiver posts a receive for the header and the data of a small message
 * together.  When the header of a large message arrives, the receiver posts the parts.
 *
 * Over verbs an adapter pauses for most of a millisecond if a part arrives before the receiver has posted
 * the part.  So the receiver tells the sender that the parts are posted, by a *ready message* on rail 0,
 * and the sender sends the parts after that.
 */
#ifndef NCCL_LIBFABRIC_FABRIC_H
#define NCCL_LIBFABRIC_FABRIC_H

#include "nccl/net_abi.h"
#include "nccl/transport.h"

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <stdatomic.h>
#include <sys/uio.h>

#define FABRIC_API FI_VERSION(1, 17)
#define FABRIC_MAX_RAILS 9  /* of a connection: rail 0 and the rails of parts */
#define FABRIC_MAX_LANES 17 /* of a device: lane 0 and lanes with threads */
#define FABRIC_SLOTS 64	    /* requests of a connection; a power of two */
#define FABRIC_NAME_SIZE 64

static_assert(FABRIC_SLOTS >= NCCL_NET_MAX_REQUESTS, "the core's requests");

/* library.c: the functions of libfabric that are no inline functions over tables. */
struct fabric_library {
	uint32_t (*version)(void);
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attributes, struct fid_fabric **fabric, void *context);
};

extern struct fabric_library fabric_library;

/* 0, or -ENOENT: no libfabric.so.1, or an unknown one.  CLIMPORT_NET_LIBFABRIC names the file. */
int fabric_library_load(void);

/* The number in the environment variable @name, or @otherwise; between @least and @most. */
size_t fabric_setting(const char *name, size_t otherwise, size_t least, size_t most);

enum fabric_sleep { FABRIC_AWAKE, FABRIC_SLEEPS_IDLE, FABRIC_SLEEPS_POSTED };

struct fabric_lane {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	pthread_mutex_t queue_lock; /* first and last */
	struct fabric_operation *first, *last;
	pthread_mutex_t post_lock; /* held while an operation of the queue goes to an endpoint */
	atomic_int posted;	   /* operations that have not ended */
	bool is_threaded;
	int cq_fd, wake_fd;    /* of a lane with a thread */
	pthread_cond_t queued; /* with queue_lock: wakes a thread without posted operations */
	_Atomic(enum fabric_sleep) sleep;
	atomic_bool is_stopping;
	pthread_t thread;
};

struct fabric_device {
	struct transport_device properties;
	char name[FABRIC_NAME_SIZE];
	char *pci_path;
	struct fi_info *info;
	struct fid_fabric *fabric;
	int number;
	pthread_mutex_t lock;	 /* users, and the making of lanes */
	int users;		 /* connections, listeners and mappings */
	struct fid_eq *eq;	 /* of the connections, as long as there are lanes */
	pthread_mutex_t eq_lock; /* reading @eq, closing endpoints, and the marks of rails */
	atomic_uint next_lane;
	unsigned int lane_count;
	struct fabric_lane lanes[FABRIC_MAX_LANES];
	pthread_mutex_t flush_lock; /* the members below */
	struct fabric_flush *flush; /* NULL: no flush was asked for, or the last pair broke */
	struct fabric_flush *broken_flushes;
	unsigned int broken_count;
};

/* device.c */
int fabric_open(void);
void fabric_close(void);
void fabric_forget(void);
/* Whether the process, and not its parent, made the device's lanes. */
bool fabric_device_is_own(const struct fabric_device *device);
int fabric_device_count(void);
struct fabric_device *fabric_device_at(int number);
/* The lanes exist as long as the device has users. */
int fabric_device_get(struct fabric_device *device);
void fabric_device_put(struct fabric_device *device);
/* The lane for the next rail of parts. */
struct fabric_lane *fabric_device_next_lane(struct fabric_device *device);
/* For each endpoint's information. */
void fabric_no_inject(struct fi_info *info);
bool fabric_device_needs_mappings(const struct fabric_device *device);
/* Whether the device's endpoints can read memory of their peers. */
bool fabric_device_can_read(const struct fabric_device *device);

struct fabric_rail {
	struct fid_ep *endpoint; /* NULL: not open, or closed because of @error */
	struct fabric_lane *lane;
	bool is_connected; /* a mark of events */
	int error;	   /* likewise: 0, or how the rail ended, a negative errno */
};

enum fabric_state { FABRIC_IDLE, FABRIC_QUEUED, FABRIC_POSTED, FABRIC_DONE };

enum fabric_kind { FABRIC_SEND, FABRIC_RECEIVE, FABRIC_READ };

struct fabric_operation {
	struct fabric_operation *next; /* in the queue of a lane */
	struct fabric_rail *rail;
	enum fabric_kind kind;
	uint64_t from, key; /* of the peer's memory, for FABRIC_READ */
	unsigned int count;
	struct iovec vectors[2];
	void *descriptors[2];
	size_t length;			  /* bytes that arrived */
	int error;			  /* 0 or a negative errno */
	_Atomic(enum fabric_state) state; /* DONE: length and error are set */
};

/* lane.c */
int fabric_lane_open(struct fabric_lane *lane, const struct fabric_device *device, bool threaded);
void fabric_lane_close(struct fabric_lane *lane);
/*
 * Posts what is queued, unless the lane has a thread, and ends operations that are complete.  Whether
 * anything happened.
 */
bool fabric_lane_progress(struct fabric_lane *lane);
/*
 * False: the endpoint has no room.  An operation that cannot be posted, or whose rail has ended, ends
 * with the error.
 */
bool fabric_post(struct fabric_operation *operation);
/* Posts the operation behind earlier ones, here or in the lane's thread. */
void fabric_queue(struct fabric_operation *operation);
/* Takes the rail's operations out of the queue: idle, as if never queued. */
void fabric_unqueue(struct fabric_rail *rail);
/* Takes the rail's operations out of the queue, and ends them with @error. */
void fabric_cancel(struct fabric_rail *rail, int error);

struct fabric_header {
	uint64_t size;
	uint64_t number; /* of the message, from 0 */
};

struct fabric_request {
	struct fabric_connection *connection;
	bool is_used;
	char *data;
	size_t size;	  /* of the message; until is_known: of the room */
	void *descriptor; /* of the memory */
	bool is_known;	  /* nothing of the peer's is missing: parts are queued */
	int error;
	unsigned int part_count;
	struct fabric_operation head;
	struct fabric_operation ready; /* idle: the message has no ready message */
	struct fabric_operation parts[FABRIC_MAX_RAILS - 1];
};

struct fabric_connection {
	struct fabric_connection *next; /* in a listener, until accepted */
	uint64_t id;
	struct fabric_device *device;
	bool sends;
	unsigned int rail_count;
	size_t small; /* bytes of the largest message that rail 0 carries */
	size_t least; /* bytes of the smallest part */
	struct fabric_rail rails[FABRIC_MAX_RAILS];
	int error;	      /* 0, or of the first message that failed: later ones fail, too */
	unsigned int watches; /* calls of fabric_watch() */
	uint64_t added;	      /* requests so far */
	uint64_t oldest;      /* the first message of which something of the peer's is missing */
	bool has_ready;	      /* large messages have ready messages */
	struct fabric_header *headers; /* FABRIC_SLOTS, and behind them as many of ready messages */
	struct fid_mr *headers_mr;
	struct fabric_request requests[FABRIC_SLOTS];
	struct fabric_request flushes[FABRIC_SLOTS]; /* whose heads are reads */
};

/* listener.c */
int fabric_listen(int device, void *handle, void **listener);
int fabric_accept(void *listener, void **connection);
void fabric_close_listener(void *listener);

/* connect.c */
int fabric_connect(int device, void *handle, void **connection);

/* connection.c */
void fabric_close_connection(void *connection);
int fabric_connection_device(void *connection);
/*
 * After an error the rails are out of step: a later message could be taken for the message that
 * failed.  So both ends' operations end with errors, and the connection takes no more requests.
 */
void fabric_break(struct fabric_connection *connection, int error);
/* Ends the rails whose peer is gone.  For callers that wait. */
void fabric_watch(struct fabric_connection *connection);

/* flush.c */
int fabric_flush(void *connection, void *data, size_t size, void *mapping, void **request);
int fabric_try_flush(int device, void *data, void *mapping);
/* A read by @reader has failed, or does not end: no more flushes use the endpoint. */
void fabric_flush_break(struct fabric_device *device, const struct fabric_rail *reader);
/* Reads of connections that are still open end with an error. */
void fabric_flush_close(struct fabric_device *device);

/* message.c */
int fabric_send(void *connection, void *data, size_t size, void *mapping, void **request);
int fabric_receive(void *connection, void *data, size_t size, void *mapping, void **request);
int fabric_test(void *request, bool *done, size_t *size);

/* mapping.c */
int fabric_map(int device, void *connection, const struct transport_range *range, void **mapping);
void fabric_unmap(void *mapping);
/* libfabric's descriptor of a mapping; NULL for NULL. */
void *fabric_mapping_descriptor(void *mapping);
/* The key by which endpoints of the process read the mapping.  False: host memory, or no such key. */
bool fabric_mapping_key(void *mapping, uint64_t *key);

#endif /* NCCL_LIBFABRIC_FABRIC_H */
