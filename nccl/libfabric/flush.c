/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flush: the adapter reads a byte of a GPU's memory.  On the bus the read comes behind all that the
 * adapter has written before, and when the byte has arrived, the GPU's kernels see the data.
 *
 * An endpoint reads memory of its peer.  So the device has a pair of endpoints that are connected to one
 * another, the *reader* and the *target*.  Flushes of all connections share the pair.  The first flush
 * makes the pair.
 *
 * A read that fails, or does not end in time, breaks the pair: an adapter takes no more reads on such an
 * endpoint.  The next flush makes a new pair.  A broken pair is shut, so that its reads end, and stays
 * until the device is closed, because other threads may wait for their reads.
 *
 * libfabric does not say what becomes of a read that comes to an endpoint behind fi_shutdown(3).  So a read is queued for
 * the pair under the lock by which pairs break, and a pair that breaks takes its reads out of the queue.
 */
#include "nccl/libfabric/flush.h"
#include "nccl/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define FLUSH_PAIRS 8 /* of a device, one after the other */

static void flush_close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

static bool flush_is_under_way(const struct fabric_operation *read)
{
	enum fabric_state state = atomic_load(&read->state);

	return state == FABRIC_QUEUED || state == FABRIC_POSTED;
}

/* Reads of closed pairs that have not ended, of all devices. */
static pthread_mutex_t flush_late_lock = PTHREAD_MUTEX_INITIALIZER;
static struct flush_trial *flush_late;

static void flush_add_late(struct flush_trial *trial)
{
	pthread_mutex_lock(&flush_late_lock);
	trial->next = flush_late;
	flush_late = trial;
	pthread_mutex_unlock(&flush_late_lock);
}

static void flush_free_late(void)
{
	struct flush_trial **at = &flush_late, *trial;

	pthread_mutex_lock(&flush_late_lock);
	while ((trial = *at)) {
		if (flush_is_under_way(&trial->read)) {
			at = &trial->next;
			continue;
		}
		*at = trial->next;
		free(trial);
	}
	pthread_mutex_unlock(&flush_late_lock);
}

/* A closed endpoint ends its operations with an error: until then a lane may write to them. */
static void flush_end_trials(struct fabric_flush *flush)
{
	time_t limit = flush_pair_limit();
	bool is_overdue = false;

	while (flush->trials) {
		struct flush_trial *trial = flush->trials;

		while (flush_is_under_way(&trial->read) && !is_overdue) {
			fabric_lane_progress(flush->reader.lane);
			is_overdue = flush_pair_is_overdue(limit);
		}
		flush->trials = trial->next;
		flush_add_late(trial);
	}
	flush_free_late();
}

static void flush_destroy(struct fabric_flush *flush)
{
	fabric_cancel(&flush->reader, -ECONNABORTED);
	flush_close_fid(flush->reader.endpoint ? &flush->reader.endpoint->fid : NULL);
	flush_close_fid(flush->target.endpoint ? &flush->target.endpoint->fid : NULL);
	flush_close_fid(flush->listener ? &flush->listener->fid : NULL);
	flush_close_fid(flush->eq ? &flush->eq->fid : NULL);
	flush_end_trials(flush);
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
	err = flush_pair_make(flush);
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

/* A read by the device's pair.  With an error nothing is queued. */
static int flush_read(struct fabric_device *device, struct fabric_operation *read, const void *data,
		      uint64_t key)
{
	int err = 0;

	pthread_mutex_lock(&device->flush_lock);
	if (!device->flush)
		err = device->broken_count < FLUSH_PAIRS ? flush_create(device, &device->flush)
							 : -EIO;
	if (!err)
		flush_queue_read(device->flush, read, data, key);
	pthread_mutex_unlock(&device->flush_lock);
	return err;
}

/* With the lock. */
static void flush_break(struct fabric_device *device)
{
	struct fabric_flush *flush = device->flush;

	device->flush = NULL;
	flush->next = device->broken_flushes;
	device->broken_flushes = flush;
	device->broken_count++;
	fabric_cancel(&flush->reader, -ECONNABORTED);
	fi_shutdown(flush->reader.endpoint, 0);
	net_warn("device %s does not read its own memory any more: %s", device->name,
		 device->broken_count < FLUSH_PAIRS ? "the next flush connects the device again"
						    : "flushes fail from now on");
}

void fabric_flush_break(struct fabric_device *device, const struct fabric_rail *reader)
{
	pthread_mutex_lock(&device->flush_lock);
	if (device->flush && &device->flush->reader == reader)
		flush_break(device);
	pthread_mutex_unlock(&device->flush_lock);
}

void fabric_flush_close(struct fabric_device *device)
{
	struct fabric_flush *flush;

	pthread_mutex_lock(&device->flush_lock);
	if (device->flush)
		flush_destroy(device->flush);
	device->flush = NULL;
	while ((flush = device->broken_flushes)) {
		device->broken_flushes = flush->next;
		flush_destroy(flush);
	}
	flush_free_late();
	device->broken_count = 0;
	pthread_mutex_unlock(&device->flush_lock);
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
	err = flush_read(c->device, &request->head, data, key);
	if (err)
		return err;
	request->connection = c;
	request->is_used = true;
	request->is_known = true;
	request->size = 0;
	*result = request;
	return 0;
}

static int flush_wait(struct fabric_operation *read)
{
	time_t limit = flush_pair_limit();

	while (atomic_load(&read->state) != FABRIC_DONE) {
		fabric_lane_progress(read->rail->lane);
		if (flush_pair_is_overdue(limit))
			return -ETIMEDOUT;
	}
	return read->error;
}

static struct fabric_flush *flush_of_reader(struct fabric_rail *reader)
{
	return (struct fabric_flush *)((char *)reader - offsetof(struct fabric_flush, reader));
}

/* The pair is broken, and outlives the read. */
static void flush_give_up(struct fabric_device *device, struct flush_trial *trial)
{
	struct fabric_flush *flush = flush_of_reader(trial->read.rail);

	pthread_mutex_lock(&device->flush_lock);
	trial->next = flush->trials;
	flush->trials = trial;
	pthread_mutex_unlock(&device->flush_lock);
}

static int flush_try(struct fabric_device *device, const void *data, uint64_t key)
{
	struct flush_trial *trial = calloc(1, sizeof(*trial));
	int err;

	if (!trial)
		return -ENOMEM;
	err = flush_read(device, &trial->read, data, key);
	if (err) {
		free(trial);
		return err;
	}
	err = flush_wait(&trial->read);
	if (err)
		fabric_flush_break(device, trial->read.rail);
	if (err == -ETIMEDOUT)
		flush_give_up(device, trial);
	else
		free(trial);
	return err;
}

int fabric_try_flush(int number, void *data, void *mapping)
{
	uint64_t key;

	if (!fabric_mapping_key(mapping, &key))
		return -EOPNOTSUPP;
	return flush_try(fabric_device_at(number), data, key);
}
