/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport within the process, which touches data in dma-bufs through (descriptor, offset) alone,
 * as a device would.  A wrong offset, a wrong zero point and an access by the CPU show.
 */
#include "loopback.h"
#include "nccl/net_abi.h"
#include "nccl/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGES 64

struct loopback_mapping {
	struct transport_range range;
};

struct loopback_request {
	bool is_used, is_done;
	int error;
	char *data;
	size_t size;
	const struct loopback_mapping *mapping;
	struct link *link;
};

/* A connection: the sends and the receives, matched by number. */
struct link {
	struct link *next; /* in the listener */
	int ends;
	bool is_closed; /* by one end */
	uint64_t sent, received, matched;
	struct loopback_request sends[MESSAGES], receives[MESSAGES];
};

struct loopback_end {
	struct link *link;
	bool sends;
};

struct loopback_listener {
	struct loopback_listener *next;
	uint64_t id;
	struct link *waiting;
};

struct loopback_handle {
	uint64_t listener;
	int calls; /* of connect; the first never connects */
};

static pthread_mutex_t loopback_lock = PTHREAD_MUTEX_INITIALIZER;
static struct loopback_listener *listeners;
static struct loopback_counts counts;
static uint64_t last_id;

__attribute__((visibility("default"))) struct loopback_counts loopback_counts(void);
__attribute__((visibility("default"))) struct loopback_counts loopback_counts(void)
{
	struct loopback_counts now;

	pthread_mutex_lock(&loopback_lock);
	now = counts;
	pthread_mutex_unlock(&loopback_lock);
	return now;
}

static int loopback_open(void)
{
	return 0;
}

static void loopback_close(void)
{
}

static void loopback_forget(void)
{
	pthread_mutex_init(&loopback_lock, NULL);
}

static int loopback_device_count(void)
{
	return !getenv("LOOPBACK_EMPTY");
}

static const struct transport_device *loopback_device(int number)
{
	static const struct transport_device device = {
		.name = "loopback",
		.guid = 1,
		.speed = 1000,
		.port = 1,
		.max_connections = LOOPBACK_CONNECTIONS,
		.max_message = LOOPBACK_MESSAGE,
		.takes_dmabufs = true,
	};

	return number ? NULL : &device;
}

static int loopback_listen(int device, void *memory, void **result)
{
	struct loopback_listener *listener = calloc(1, sizeof(*listener));
	struct loopback_handle *handle = memory;

	(void)device;
	if (!listener)
		return -ENOMEM;
	pthread_mutex_lock(&loopback_lock);
	listener->id = ++last_id;
	listener->next = listeners;
	listeners = listener;
	pthread_mutex_unlock(&loopback_lock);
	handle->listener = listener->id;
	*result = listener;
	return 0;
}

static struct loopback_end *end_new(struct link *link, bool sends)
{
	struct loopback_end *end = calloc(1, sizeof(*end));

	if (!end)
		abort();
	end->link = link;
	end->sends = sends;
	link->ends++;
	counts.connections++;
	return end;
}

static int loopback_connect(int device, void *memory, void **result)
{
	struct loopback_handle *handle = memory;
	struct loopback_listener *l;
	struct link *link;
	int err = 0;

	(void)device;
	if (!handle->calls++)
		return 0;
	pthread_mutex_lock(&loopback_lock);
	l = listeners;
	while (l && l->id != handle->listener)
		l = l->next;
	link = l ? calloc(1, sizeof(*link)) : NULL;
	if (link) {
		*result = end_new(link, true);
		link->next = l->waiting;
		l->waiting = link;
	} else {
		err = -ECONNREFUSED;
	}
	pthread_mutex_unlock(&loopback_lock);
	return err;
}

static int loopback_accept(void *memory, void **result)
{
	struct loopback_listener *listener = memory;
	struct link *link;

	pthread_mutex_lock(&loopback_lock);
	link = listener->waiting;
	if (link) {
		listener->waiting = link->next;
		*result = end_new(link, false);
	}
	pthread_mutex_unlock(&loopback_lock);
	return 0;
}

static void loopback_close_listener(void *memory)
{
	struct loopback_listener *listener = memory, **at = &listeners;

	pthread_mutex_lock(&loopback_lock);
	while (*at != listener)
		at = &(*at)->next;
	*at = listener->next;
	pthread_mutex_unlock(&loopback_lock);
	free(listener);
}

static void loopback_close_connection(void *memory)
{
	struct loopback_end *end = memory;

	pthread_mutex_lock(&loopback_lock);
	counts.connections--;
	end->link->is_closed = true;
	if (!--end->link->ends)
		free(end->link);
	pthread_mutex_unlock(&loopback_lock);
	free(end);
}

static int loopback_map(int device, void *connection, const struct transport_range *range,
			void **result)
{
	struct loopback_mapping *mapping;

	(void)device, (void)connection;
	if (range->fd >= 0 && getenv("LOOPBACK_REFUSES"))
		return -EOPNOTSUPP;
	mapping = malloc(sizeof(*mapping));
	if (!mapping)
		return -ENOMEM;
	mapping->range = *range;
	if (range->fd >= 0)
		mapping->range.fd = fcntl(range->fd, F_DUPFD_CLOEXEC, 3);
	pthread_mutex_lock(&loopback_lock);
	counts.mappings++;
	counts.mapped++;
	pthread_mutex_unlock(&loopback_lock);
	*result = mapping;
	return 0;
}

static void loopback_unmap(void *memory)
{
	struct loopback_mapping *mapping = memory;

	pthread_mutex_lock(&loopback_lock);
	counts.mappings--;
	pthread_mutex_unlock(&loopback_lock);
	if (mapping->range.fd >= 0)
		close(mapping->range.fd);
	free(mapping);
}

static int loopback_connection_device(void *connection)
{
	(void)connection;
	return 0;
}

/* Reads or writes @size bytes of the request, by the descriptor if the memory is a dma-buf's. */
static int request_copy(const struct loopback_request *request, char *bytes, size_t size,
			bool write)
{
	const struct transport_range *range = &request->mapping->range;
	size_t at = (size_t)(request->data - (const char *)range->base);
	off_t place = (off_t)(range->offset + at);
	ssize_t moved;

	if (request->data < (const char *)range->base || at + size > range->size)
		return -EFAULT;
	if (range->fd < 0) {
		memcpy(write ? request->data : bytes, write ? bytes : request->data, size);
		return 0;
	}
	moved = write ? pwrite(range->fd, bytes, size, place)
		      : pread(range->fd, bytes, size, place);
	return moved == (ssize_t)size ? 0 : -EIO;
}

static void link_match(struct link *link)
{
	while (link->matched < link->sent && link->matched < link->received) {
		struct loopback_request *send = &link->sends[link->matched % MESSAGES];
		struct loopback_request *receive = &link->receives[link->matched % MESSAGES];
		char *bytes = malloc(send->size + 1);
		int err = send->size > receive->size ? -EMSGSIZE : 0;

		if (!err && bytes)
			err = request_copy(send, bytes, send->size, false);
		if (!err && bytes)
			err = request_copy(receive, bytes, send->size, true);
		free(bytes);
		receive->size = send->size;
		receive->error = err;
		send->is_done = true;
		receive->is_done = true;
		link->matched++;
	}
}

static struct loopback_request *request_add(struct loopback_request *requests, uint64_t *number,
					    struct link *link)
{
	struct loopback_request *request = &requests[*number % MESSAGES];

	if (request->is_used)
		return NULL;
	(*number)++;
	*request = (struct loopback_request){ .is_used = true, .link = link };
	return request;
}

static int end_post(void *connection, void *data, size_t size, void *mapping, void **result)
{
	struct loopback_end *end = connection;
	struct link *link = end->link;
	struct loopback_request *request;

	if (!mapping)
		return -EINVAL;
	pthread_mutex_lock(&loopback_lock);
	request = end->sends ? request_add(link->sends, &link->sent, link)
			     : request_add(link->receives, &link->received, link);
	if (request) {
		request->data = data;
		request->size = size;
		request->mapping = mapping;
	}
	pthread_mutex_unlock(&loopback_lock);
	*result = request;
	return 0;
}

static int loopback_test(void *memory, bool *done, size_t *size)
{
	struct loopback_request *request = memory;
	int err = 0;

	pthread_mutex_lock(&loopback_lock);
	link_match(request->link);
	if (!request->is_done && request->link->is_closed)
		err = -ECONNRESET;
	if (request->is_done || err) {
		*done = request->is_done;
		*size = request->size;
		request->is_used = false;
		err = err ? err : request->error;
	}
	pthread_mutex_unlock(&loopback_lock);
	return err;
}

static int loopback_try_flush(int device, void *data, void *mapping)
{
	(void)device, (void)data, (void)mapping;
	return getenv("LOOPBACK_FLUSHES") ? 0 : -EOPNOTSUPP;
}

/* Reads as a device would. */
static int loopback_flush(void *connection, void *data, size_t size, void *mapping, void **result)
{
	const struct loopback_request read = { .data = data, .size = size, .mapping = mapping };
	char byte;
	int err = request_copy(&read, &byte, 1, false);

	(void)connection;
	pthread_mutex_lock(&loopback_lock);
	counts.flushes += !err;
	pthread_mutex_unlock(&loopback_lock);
	*result = NULL;
	return err;
}

static const struct transport transport_loopback = {
	.name = "loopback",
	.open = loopback_open,
	.close = loopback_close,
	.forget = loopback_forget,
	.device_count = loopback_device_count,
	.device = loopback_device,
	.listen = loopback_listen,
	.connect = loopback_connect,
	.accept = loopback_accept,
	.close_listener = loopback_close_listener,
	.close_connection = loopback_close_connection,
	.map = loopback_map,
	.unmap = loopback_unmap,
	.connection_device = loopback_connection_device,
	.send = end_post,
	.receive = end_post,
	.test = loopback_test,
	.flush = loopback_flush,
	.try_flush = loopback_try_flush,
};

const struct transport *const transports[] = { &transport_loopback, NULL };
