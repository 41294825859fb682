/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/libfabric/flush.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define FLUSH_SECONDS 5

time_t flush_pair_limit(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + FLUSH_SECONDS;
}

bool flush_pair_is_overdue(time_t limit)
{
	struct timespec now;

	sched_yield();
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > limit;
}

static int flush_pair_listen(struct fabric_flush *flush, void *address, size_t *size)
{
	struct fabric_device *device = flush->device;
	int err = fi_passive_ep(device->fabric, device->info, &flush->listener, NULL);

	if (!err)
		err = fi_pep_bind(flush->listener, &flush->eq->fid, 0);
	if (!err)
		err = fi_listen(flush->listener);
	return err ? err : fi_getname(&flush->listener->fid, address, size);
}

static int flush_pair_connect(struct fabric_flush *flush, const void *address, size_t size)
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

static bool flush_pair_is_own_request(const struct fabric_flush *flush,
				      const union fabric_cm_event *event, size_t size)
{
	struct fabric_hello hello;

	if (size < sizeof(event->entry) + sizeof(hello) || flush->target.endpoint)
		return false;
	memcpy(&hello, event->entry.data, sizeof(hello));
	return hello.magic == FABRIC_MAGIC && hello.connection == flush->id;
}

static int flush_pair_accept(struct fabric_flush *flush, const union fabric_cm_event *event,
			     size_t size)
{
	struct fi_info *info = event->entry.info;
	int err = 0;

	if (flush_pair_is_own_request(flush, event, size)) {
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
static int flush_pair_read_event(struct fabric_flush *flush)
{
	union fabric_cm_event event;
	uint32_t kind;
	ssize_t ret = fi_eq_read(flush->eq, &kind, &event, sizeof(event), 0);

	if (ret == -FI_EAVAIL)
		return fabric_event_error(flush->eq);
	if (ret < 0)
		return (int)ret;
	if (kind == FI_CONNREQ)
		return flush_pair_accept(flush, &event, (size_t)ret);
	if (kind != FI_CONNECTED)
		return -ECONNRESET;
	if (event.entry.fid == &flush->reader.endpoint->fid)
		flush->reader.is_connected = true;
	else
		flush->target.is_connected = true;
	return 0;
}

static int flush_pair_wait(struct fabric_flush *flush)
{
	time_t limit = flush_pair_limit();
	int err;

	while (!flush->reader.is_connected || !flush->target.is_connected) {
		err = flush_pair_read_event(flush);
		if (err && err != -EAGAIN)
			return err;
		if (flush_pair_is_overdue(limit))
			return -ETIMEDOUT;
	}
	return 0;
}

int flush_pair_make(struct fabric_flush *flush)
{
	struct fi_eq_attr attributes = { .wait_obj = FI_WAIT_NONE };
	unsigned char address[FABRIC_ADDRESS_SIZE];
	size_t size = sizeof(address);
	int err = fabric_random_id(&flush->id);

	if (!err)
		err = fi_eq_open(flush->device->fabric, &attributes, &flush->eq, NULL);
	if (!err)
		err = flush_pair_listen(flush, address, &size);
	if (!err)
		err = flush_pair_connect(flush, address, size);
	if (!err)
		err = flush_pair_wait(flush);
	if (!err)
		err = fi_mr_reg(flush->reader.lane->domain, &flush->landing, sizeof(flush->landing),
				FI_READ, 0, 0, 0, &flush->landing_mr, NULL);
	return err;
}
