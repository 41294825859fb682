/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/libfabric/fabric.h"
#include "nccl/log.h"

#include <errno.h>
#include <string.h>

#define PART_ALIGNMENT 4096

/* *result is NULL if there is no room now. */
static int message_begin(struct fabric_connection *connection, void *data, size_t size,
			 void *mapping, struct fabric_request **result)
{
	struct fabric_request *request = &connection->requests[connection->added % FABRIC_SLOTS];

	*result = NULL;
	if (!fabric_device_is_own(connection->device))
		return -ENOTCONN;
	if (connection->error)
		return connection->error;
	/* libfabric reads the descriptor of all memory that is not empty. */
	if (size && !mapping && fabric_device_needs_mappings(connection->device))
		return -EINVAL;
	if (request->is_used)
		return 0;
	request->connection = connection;
	request->data = data;
	request->size = size;
	request->descriptor = fabric_mapping_descriptor(mapping);
	request->is_known = connection->sends;
	request->error = 0;
	request->part_count = 0;
	atomic_store(&request->ready.state, FABRIC_IDLE);
	*result = request;
	return 0;
}

static struct fabric_header *message_header(const struct fabric_request *request)
{
	return &request->connection->headers[request - request->connection->requests];
}

static struct fabric_header *message_ready_header(const struct fabric_request *request)
{
	return message_header(request) + FABRIC_SLOTS;
}

/* The operation of a header, which others may follow. */
static void message_prepare(struct fabric_operation *operation,
			    struct fabric_connection *connection, struct fabric_header *header,
			    bool sends)
{
	struct fid_mr *mr = connection->headers_mr;

	operation->rail = &connection->rails[0];
	operation->kind = sends ? FABRIC_SEND : FABRIC_RECEIVE;
	operation->vectors[0] = (struct iovec){ header, sizeof(*header) };
	operation->descriptors[0] = mr ? fi_mr_desc(mr) : NULL;
	operation->count = 1;
}

/* The operation of the header, and behind the header @size bytes of the data. */
static struct fabric_operation *message_head(struct fabric_request *request, size_t size)
{
	struct fabric_operation *head = &request->head;

	message_prepare(head, request->connection, message_header(request),
			request->connection->sends);
	head->vectors[1] = (struct iovec){ request->data, size };
	head->descriptors[1] = request->descriptor;
	head->count = size ? 2 : 1;
	return head;
}

/* The operation of the ready message, which goes from the receiver to the sender. */
static struct fabric_operation *message_ready(struct fabric_request *request)
{
	message_prepare(&request->ready, request->connection, message_ready_header(request),
			!request->connection->sends);
	return &request->ready;
}

/*
 * Both ends cut a message alike: into parts of one size but the last, which begin with another rail for
 * each message.
 */
static void message_queue_parts(struct fabric_request *request, uint64_t number)
{
	struct fabric_connection *connection = request->connection;
	size_t rails = connection->rail_count - 1;
	size_t parts = request->size / connection->least;
	size_t each;

	if (parts > rails)
		parts = rails;
	if (!parts)
		parts = 1;
	/* Rounded up twice: @parts parts hold the message. */
	each = (request->size + parts - 1) / parts;
	each = (each + PART_ALIGNMENT - 1) & ~(size_t)(PART_ALIGNMENT - 1);
	for (size_t at = 0; at < request->size; at += each) {
		struct fabric_operation *part = &request->parts[request->part_count];
		size_t left = request->size - at;

		part->rail = &connection->rails[1 + (number * parts + request->part_count) % rails];
		part->kind = connection->sends ? FABRIC_SEND : FABRIC_RECEIVE;
		part->vectors[0] = (struct iovec){ request->data + at, left < each ? left : each };
		part->descriptors[0] = request->descriptor;
		part->count = 1;
		request->part_count++;
		fabric_queue(part);
	}
}

/* Pairs with lane_end_operation(). */
static bool message_operation_is_done(const struct fabric_operation *operation)
{
	return atomic_load_explicit(&operation->state, memory_order_acquire) == FABRIC_DONE;
}

/* Behind the parts in the queue: the receives are posted before the ready message leaves. */
static void message_tell_ready(struct fabric_request *request)
{
	if (!request->connection->has_ready)
		return;
	*message_ready_header(request) = *message_header(request);
	fabric_queue(message_ready(request));
}

/* The header of the request has arrived: its size is the message's. */
static int message_see_header(struct fabric_request *request, uint64_t number)
{
	const struct fabric_header *header = message_header(request);
	size_t room = request->size;

	if (request->head.error)
		return request->head.error;
	if (request->head.length < sizeof(*header) || header->number != number)
		return -EPROTO;
	if (header->size > room)
		return -EMSGSIZE;
	request->size = header->size;
	if (request->size > request->connection->small) {
		message_queue_parts(request, number);
		message_tell_ready(request);
	} else if (request->head.length != sizeof(*header) + request->size) {
		return -EPROTO;
	}
	return 0;
}

/* The ready message of the request has arrived. */
static int message_see_ready(struct fabric_request *request, uint64_t number)
{
	const struct fabric_header *header = message_ready_header(request);

	if (request->ready.error)
		return request->ready.error;
	if (request->ready.length != sizeof(*header) || header->number != number)
		return -EPROTO;
	message_queue_parts(request, number);
	return 0;
}

/* False: what the peer is to tell has not arrived. */
static bool message_see(struct fabric_request *request, uint64_t number)
{
	struct fabric_connection *c = request->connection;

	if (!message_operation_is_done(c->sends ? &request->ready : &request->head))
		return false;
	request->error = c->error   ? c->error
			 : c->sends ? message_see_ready(request, number)
				    : message_see_header(request, number);
	c->error = request->error; /* the messages before this one may still arrive */
	request->is_known = true;
	return true;
}

/* In the order of the messages, which is the order of their parts. */
static void message_see_all(struct fabric_connection *connection)
{
	while (connection->oldest != connection->added) {
		struct fabric_request *request =
			&connection->requests[connection->oldest % FABRIC_SLOTS];

		if (!request->is_known && !message_see(request, connection->oldest))
			return;
		connection->oldest++;
	}
}

static void message_added(struct fabric_request *request, void **result)
{
	request->is_used = true;
	request->connection->added++;
	*result = request;
}

/*
 * False: no room; the core gets no request, and comes again.  An endpoint whose peer is gone may have no
 * room any more (tcp of libfabric 2.1), and there is no request whose test would tell.
 */
static bool message_post(struct fabric_operation *operation, struct fabric_connection *connection)
{
	if (fabric_post(operation))
		return true;
	fabric_lane_progress(operation->rail->lane);
	fabric_watch(connection);
	return false;
}

/* The sender's part of a large message before the header.  False: no room. */
static bool message_send_large(struct fabric_request *request)
{
	struct fabric_connection *connection = request->connection;

	if (connection->has_ready) {
		request->is_known = false;
		return message_post(message_ready(request), connection);
	}
	message_queue_parts(request, connection->added); /* the threads begin already */
	return true;
}

int fabric_send(void *handle, void *data, size_t size, void *mapping, void **result)
{
	struct fabric_connection *connection = handle;
	struct fabric_request *request;
	bool is_large = size > connection->small;
	int err;

	err = message_begin(connection, data, size, mapping, &request);
	if (!request)
		return err;
	message_see_all(connection);
	*message_header(request) =
		(struct fabric_header){ .size = size, .number = connection->added };
	if (is_large && !message_send_large(request))
		return 0;
	/*
	 * Heads leave in the order of the messages: those of small messages, too, go through the queue,
	 * where the head of a large message may still be.
	 */
	fabric_queue(message_head(request, is_large ? 0 : size));
	message_added(request, result);
	return 0;
}

int fabric_receive(void *handle, void *data, size_t size, void *mapping, void **result)
{
	struct fabric_connection *connection = handle;
	struct fabric_request *request;
	size_t small = size < connection->small ? size : connection->small;
	int err = message_begin(connection, data, size, mapping, &request);

	if (request && message_post(message_head(request, small), connection))
		message_added(request, result);
	return err;
}

static bool message_is_done(const struct fabric_request *request)
{
	if (!request->is_known || !message_operation_is_done(&request->head))
		return false;
	if (atomic_load(&request->ready.state) != FABRIC_IDLE &&
	    !message_operation_is_done(&request->ready))
		return false;
	for (unsigned int i = 0; i < request->part_count; i++)
		if (!message_operation_is_done(&request->parts[i]))
			return false;
	return true;
}

static int message_error(const struct fabric_request *request)
{
	int error = request->error ? request->error : request->head.error;

	if (!error && atomic_load(&request->ready.state) != FABRIC_IDLE)
		error = request->ready.error;
	for (unsigned int i = 0; i < request->part_count && !error; i++) {
		const struct fabric_operation *part = &request->parts[i];

		error = part->error;
		if (!error && part->kind == FABRIC_RECEIVE &&
		    part->length != part->vectors[0].iov_len)
			error = -EPROTO;
	}
	return error;
}

/* Whether the caller drives what the request waits for, and not a thread. */
static bool message_needs_caller(const struct fabric_request *request)
{
	const struct fabric_connection *connection = request->connection;

	return !connection->sends || !message_operation_is_done(&request->head) ||
	       !connection->rails[1].lane->is_threaded;
}

static void message_progress(struct fabric_request *request)
{
	struct fabric_connection *connection = request->connection;

	if (message_needs_caller(request))
		fabric_lane_progress(connection->rails[0].lane);
	fabric_watch(connection);
	message_see_all(connection);
}

int fabric_test(void *handle, bool *done, size_t *size)
{
	struct fabric_request *request = handle;
	int err;

	*done = false;
	if (!fabric_device_is_own(request->connection->device))
		return -ENOTCONN;
	if (!message_is_done(request))
		message_progress(request);
	if (!message_is_done(request))
		return 0;
	err = message_error(request);
	request->is_used = false;
	if (err && request->head.kind == FABRIC_READ)
		fabric_flush_break(request->connection->device, request->head.rail);
	if (err) {
		fabric_break(request->connection, err);
		return err;
	}
	*done = true;
	*size = request->size;
	return 0;
}
