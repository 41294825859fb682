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
	*result = request;
	return 0;
}

static struct fabric_header *message_header(const struct fabric_request *request)
{
	return &request->connection->headers[request - request->connection->requests];
}

/* The operation of the header, and behind the header @size bytes of the data. */
static struct fabric_operation *message_head(struct fabric_request *request, size_t size)
{
	struct fabric_connection *connection = request->connection;
	struct fabric_operation *head = &request->head;
	struct fid_mr *mr = connection->headers_mr;

	head->rail = &connection->rails[0];
	head->sends = connection->sends;
	head->vectors[0] = (struct iovec){ message_header(request), sizeof(struct fabric_header) };
	head->descriptors[0] = mr ? fi_mr_desc(mr) : NULL;
	head->vectors[1] = (struct iovec){ request->data, size };
	head->descriptors[1] = request->descriptor;
	head->count = size ? 2 : 1;
	return head;
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
		part->sends = connection->sends;
		part->vectors[0] = (struct iovec){ request->data + at, left < each ? left : each };
		part->descriptors[0] = request->descriptor;
		part->count = 1;
		request->part_count++;
		fabric_queue(part);
	}
}

static void message_added(struct fabric_request *request, void **result)
{
	request->is_used = true;
	request->connection->added++;
	*result = request;
}

/* -EAGAIN from the endpoint: the caller gets no request, and comes again. */
static int message_post(struct fabric_request *request, size_t size, void **result)
{
	int err = fabric_post(message_head(request, size));

	if (err == -EAGAIN)
		return 0;
	if (err) {
		fabric_break(request->connection, err);
		return err;
	}
	message_added(request, result);
	return 0;
}

int fabric_send(void *handle, void *data, size_t size, void *mapping, void **result)
{
	struct fabric_connection *connection = handle;
	struct fabric_request *request;
	int err = message_begin(connection, data, size, mapping, &request);

	if (!request)
		return err;
	*message_header(request) =
		(struct fabric_header){ .size = size, .number = connection->added };
	/*
	 * Heads leave in the order of the messages: those of small messages, too, go through the queue,
	 * where the head of a large message may still be.
	 */
	if (size > connection->small) {
		message_queue_parts(request, connection->added); /* the threads begin already */
		size = 0;
	}
	fabric_queue(message_head(request, size));
	message_added(request, result);
	return 0;
}

int fabric_receive(void *handle, void *data, size_t size, void *mapping, void **result)
{
	struct fabric_connection *connection = handle;
	struct fabric_request *request;
	int err = message_begin(connection, data, size, mapping, &request);

	if (!request)
		return err;
	return message_post(request, size < connection->small ? size : connection->small, result);
}

static bool message_operation_is_done(const struct fabric_operation *operation)
{
	return atomic_load_explicit(&operation->state, memory_order_acquire) == FABRIC_DONE;
}

static bool message_is_done(const struct fabric_request *request)
{
	if (!request->is_known || !message_operation_is_done(&request->head))
		return false;
	for (unsigned int i = 0; i < request->part_count; i++)
		if (!message_operation_is_done(&request->parts[i]))
			return false;
	return true;
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
	if (request->size > request->connection->small)
		message_queue_parts(request, number);
	else if (request->head.length != sizeof(*header) + request->size)
		return -EPROTO;
	return 0;
}

static void message_see_headers(struct fabric_connection *connection)
{
	struct fabric_request *request;

	while (connection->oldest != connection->added) {
		request = &connection->requests[connection->oldest % FABRIC_SLOTS];
		if (!message_operation_is_done(&request->head))
			return;
		request->error = connection->error
					 ? connection->error
					 : message_see_header(request, connection->oldest);
		if (request->error)
			fabric_break(connection, request->error);
		request->is_known = true;
		connection->oldest++;
	}
}

static int message_error(const struct fabric_request *request)
{
	int error = request->error ? request->error : request->head.error;

	for (unsigned int i = 0; i < request->part_count && !error; i++) {
		const struct fabric_operation *part = &request->parts[i];

		error = part->error;
		if (!error && !part->sends && part->length != part->vectors[0].iov_len)
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
	if (!connection->sends)
		message_see_headers(connection);
}

int fabric_test(void *handle, bool *done, size_t *size)
{
	struct fabric_request *request = handle;
	int err;

	*done = false;
	if (!message_is_done(request))
		message_progress(request);
	if (!message_is_done(request))
		return 0;
	err = message_error(request);
	request->is_used = false;
	if (err) {
		fabric_break(request->connection, err);
		return err;
	}
	*done = true;
	*size = request->size;
	return 0;
}
