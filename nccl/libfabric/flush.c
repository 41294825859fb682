/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flush: the adapter reads a byte of a GPU's memory.  On the bus the read comes behind all that the
 * adapter has written before, and when the byte has arrived, the GPU's kernels see the data.
 *
 * An endpoint reads memory of its peer.  So the device has a pair of endpoints that are connected to one
 * another, the *reader* and the *target*.  Flushes of all connections share the pair.  The first flush
 * makes the pair, and the pair lives as long as the device.
 */
#include "nccl/libfabric/handshake.h"
#include "nccl/log.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLUSH_SECONDS 5 /* for the pair, and for the read of a trial */

struct fabric_flush {
	struct fabric_device *device;
	struct fid_eq *eq;
	struct fid_pep *listener; /* until the pair is connected */
	uint64_t id;		  /* of the reader's request */
	struct fabric_rail reader, target;
	uint64_t landing; /* where the bytes go */
	struct fid_mr *landing_mr;
};

static time_t flush_limit(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + FLUSH_SECONDS;
}

static bool flush_is_overdue(time_t limit)
{
	struct timespec now;

	sched_yield();
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > limit;
}

static int flush_listen(struct fabric_flush *flush, void *address, size_t *size)
{
	struct fabric_device *device = flush->device;
	int err = fi_passive_ep(device->fabric, device->info, &flush->listener, NULL);

	if (!err)
		err = fi_pep_bind(flush->listener, &flush->eq->fid, 0);
	if (!err)
		err = fi_listen(flush->listener);
	return err ? err : fi_getname(&flush->listener->fid, address, size);
}

static int flush_connect(struct fabric_flush *flush, const void *address, size_t size)
{
	struct fabric_hello hello = { .magic = FABRIC_MAGIC,
				      .protocol = FABRIC_PROTOCOL,
				      .connection = flush->id };
	struct fi_info *info = fabric_info_to(flush->device, address, size);
	int err;

	if (!info)
		return -ENOMEM;
	err = fabric_rail_open(&flush->reader, flush->eq, info);
	if (!err)
		err = fi_connect(flush->reader.endpoint, info->dest_addr, &hello, sizeof(hello));
	fabric_library.freeinfo(info);
	return err;
}

static bool flush_is_own_request(const struct fabric_flush *flush,
				 const union fabric_cm_event *event, size_t size)
{
	struct fabric_hello hello;

	if (size < sizeof(event->entry) + sizeof(hello) || flush->target.endpoint)
		return false;
	memcpy(&hello, event->entry.data, sizeof(hello));
	return hello.magic == FABRIC_MAGIC && hello.connection == flush->id;
}

static int flush_accept(struct fabric_flush *flush, const union fabric_cm_event *event, size_t size)
{
	struct fi_info *info = event->entry.info;
	int err = 0;

	if (flush_is_own_request(flush, event, size)) {
		err = fabric_rail_open(&flush->target, flush->eq, info);
		if (!err)
			err = fi_accept(flush->target.endpoint, NULL, 0);
	} else {
		fi_reject(flush->listener, info->handle, NULL, 0);
	}
	fabric_library.freeinfo(info);
	return err;
}

/* -EAGAIN: no event. */
static int flush_read_event(struct fabric_flush *flush)
{
	union fabric_cm_event event;
	uint32_t kind;
	ssize_t ret = fi_eq_read(flush->eq, &kind, &event, sizeof(event), 0);

	if (ret == -FI_EAVAIL)
		return fabric_event_error(flush->eq);
	if (ret < 0)
		return (int)ret;
	if (kind == FI_CONNREQ)
		return flush_accept(flush, &event, (size_t)ret);
	if (kind != FI_CONNECTED)
		return -ECONNRESET;
	if (event.entry.fid == &flush->reader.endpoint->fid)
		flush->reader.is_connected = true;
	else
		flush->target.is_connected = true;
	return 0;
}

static int flush_wait_for_pair(struct fabric_flush *flush)
{
	time_t limit = flush_limit();
	int err;

	while (!flush->reader.is_connected || !flush->target.is_connected) {
		err = flush_read_event(flush);
		if (err && err != -EAGAIN)
			return err;
		if (flush_is_overdue(limit))
			return -ETIMEDOUT;
	}
	return 0;
}

static int flush_make_pair(struct fabric_flush *flush)
{
	struct fi_eq_attr attributes = { .wait_obj = FI_WAIT_NONE };
	unsigned char address[FABRIC_ADDRESS_SIZE];
	size_t size = sizeof(address);
	int err = fabric_random_id(&flush->id);

	if (!err)
		err = fi_eq_open(flush->device->fabric, &attributes, &flush->eq, NULL);
	if (!err)
		err = flush_listen(flush, address, &size);
	if (!err)
		err = flush_connect(flush, address, size);
	if (!err)
		err = flush_wait_for_pair(flush);
	if (!err)
		err = fi_mr_reg(flush->reader.lane->domain, &flush->landing, sizeof(flush->landing),
				FI_READ, 0, 0, 0, &flush->landing_mr, NULL);
	return err;
}

static void flush_close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

static void flush_destroy(struct fabric_flush *flush)
{
	flush_close_fid(flush->reader.endpoint ? &flush->reader.endpoint->fid : NULL);
	flush_close_fid(flush->target.endpoint ? &flush->target.endpoint->fid : NULL);
	flush_close_fid(flush->listener ? &flush->listener->fid : NULL);
	flush_close_fid(flush->eq ? &flush->eq->fid : NULL);
	flush_close_fid(flush->landing_mr ? &flush->landing_mr->fid : NULL);
	fabric_device_put(flush->device);
	free(flush);
}

static int flush_create(struct fabric_device *device, struct fabric_flush **result)
{
	struct fabric_flush *flush = calloc(1, sizeof(*flush));
	int err;

	if (!flush)
		return -ENOMEM;
	err = fabric_device_get(device);
	if (err) {
		free(flush);
		return err;
	}
	flush->device = device;
	flush->reader.lane = flush->target.lane = &device->lanes[0];
	err = flush_make_pair(flush);
	if (err) {
		net_warn("device %s cannot read memory of its own: %s", device->name,
			 net_error_text(err));
		flush_destroy(flush);
		return err;
	}
	fi_close(&flush->listener->fid);
	flush->listener = NULL;
	*result = flush;
	return 0;
}

static int flush_get(struct fabric_device *device, struct fabric_flush **flush)
{
	int err = 0;

	pthread_mutex_lock(&device->flush_lock);
	if (!device->flush)
		err = flush_create(device, &device->flush);
	*flush = device->flush;
	pthread_mutex_unlock(&device->flush_lock);
	return err;
}

void fabric_flush_close(struct fabric_device *device)
{
	pthread_mutex_lock(&device->flush_lock);
	if (device->flush)
		flush_destroy(device->flush);
	device->flush = NULL;
	pthread_mutex_unlock(&device->flush_lock);
}

static void flush_queue_read(struct fabric_flush *flush, struct fabric_operation *read,
			     const void *data, uint64_t key)
{
	read->rail = &flush->reader;
	read->kind = FABRIC_READ;
	read->from = (uintptr_t)data;
	read->key = key;
	read->vectors[0] = (struct iovec){ &flush->landing, 1 };
	read->descriptors[0] = fi_mr_desc(flush->landing_mr);
	read->count = 1;
	fabric_queue(read);
}

static struct fabric_request *flush_find_slot(struct fabric_connection *c)
{
	for (size_t i = 0; i < FABRIC_SLOTS; i++)
		if (!c->flushes[i].is_used)
			return &c->flushes[i];
	return NULL;
}

int fabric_flush(void *handle, void *data, size_t size, void *mapping, void **result)
{
	struct fabric_connection *c = handle;
	struct fabric_request *request = flush_find_slot(c);
	struct fabric_flush *flush;
	uint64_t key;
	int err;

	if (!fabric_device_is_own(c->device))
		return -ENOTCONN;
	if (c->error)
		return c->error;
	if (!size || !fabric_mapping_key(mapping, &key))
		return 0;
	if (!request)
		return -EBUSY; /* more flushes than receives */
	err = flush_get(c->device, &flush);
	if (err)
		return err;
	request->connection = c;
	request->is_used = true;
	request->is_known = true;
	request->size = 0;
	flush_queue_read(flush, &request->head, data, key);
	*result = request;
	return 0;
}

/* An operation that does not end keeps its memory. */
static int flush_wait(struct fabric_operation *read)
{
	time_t limit = flush_limit();
	int err;

	while (atomic_load(&read->state) != FABRIC_DONE) {
		fabric_lane_progress(read->rail->lane);
		if (flush_is_overdue(limit))
			return -ETIMEDOUT;
	}
	err = read->error;
	free(read);
	return err;
}

int fabric_try_flush(int number, void *data, void *mapping)
{
	struct fabric_device *device = fabric_device_at(number);
	struct fabric_operation *read;
	struct fabric_flush *flush;
	uint64_t key;
	int err;

	if (!fabric_mapping_key(mapping, &key))
		return -EOPNOTSUPP;
	err = flush_get(device, &flush);
	if (err)
		return err;
	read = calloc(1, sizeof(*read));
	if (!read)
		return -ENOMEM;
	flush_queue_read(flush, read, data, key);
	return flush_wait(read);
}
