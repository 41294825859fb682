/* SPDX-License-Identifier: Apache-2.0 */
/* Flushes of a device whose reads fail or do not end, over a libfabric of the test's. */
#include "fake_fabric.h"
#include "harness.h"
#include "nccl/libfabric/handshake.h"

#include <errno.h>

#define PAIRS 8 /* of a device: FLUSH_PAIRS of flush.c */
#define ROUNDS \
	200 /* of two threads; before breaks had a lock, one of 3 saw a read on a shut endpoint */
#define TESTS 1000 /* of a request: more than the clock's seconds for any read */

static char flush_memory[64];
static void *flush_mapping;
static struct fabric_device *flush_device;

static void flush_open(enum fake_reads reads)
{
	const struct transport_range range = { .base = flush_memory,
					       .size = sizeof(flush_memory),
					       .fd = 5 };

	fake_fabric_install(reads);
	setenv("CLIMPORT_NET_PROVIDER", "verbs", 1);
	EXPECT_EQ(fabric_open(), 0);
	flush_device = fabric_device_at(0);
	EXPECT(flush_device);
	EXPECT_EQ(fabric_map(0, NULL, &range, &flush_mapping), 0);
}

static void flush_close(void)
{
	fabric_unmap(flush_mapping);
	fabric_close();
	EXPECT_EQ(fake_fabric_open(), 0);
	EXPECT_EQ(fabric_device_count(), 0);
	EXPECT_EQ(fake_fabric_reads_closed(), 0);
	EXPECT_EQ(fake_fabric_reads_shut(), 0);
}

static int flush_try_it(void)
{
	return fabric_try_flush(0, flush_memory, flush_mapping);
}

/* A receiver, as far as flushes need one. */
static struct fabric_connection *flush_connect_receiver(void)
{
	struct fi_info *info = fabric_library.dupinfo(flush_device->info);
	struct fabric_connection *c;

	EXPECT_EQ(fabric_connection_new(flush_device, false, &c), 0);
	c->rail_count = 1;
	EXPECT_EQ(fabric_connection_open_rail(c, 0, info), 0);
	fabric_library.freeinfo(info);
	return c;
}

/* -EAGAIN: the flush does not end. */
static int flush_finish(void *request)
{
	bool done = false;
	size_t size;
	int err = 0;

	for (int i = 0; i < TESTS && !done && !err; i++)
		err = fabric_test(request, &done, &size);
	return done || err ? err : -EAGAIN;
}

static int flush_on(struct fabric_connection *c)
{
	void *request = NULL;
	int err = fabric_flush(c, flush_memory, 1, flush_mapping, &request);

	return err ? err : flush_finish(request);
}

TEST(flush_works, "Flushes of trials and of connections share a pair of endpoints.")
{
	struct fabric_connection *c;

	flush_open(FAKE_READS_END);
	c = flush_connect_receiver();
	EXPECT_EQ(flush_try_it(), 0);
	EXPECT_EQ(flush_on(c), 0);
	EXPECT_EQ(fake_fabric_pairs(), 1);
	fabric_close_connection(c);
	flush_close();
}

TEST(trial_in_queue,
     "If the read of a trial waits for room until the device is closed, the read is not posted.")
{
	flush_open(FAKE_READS_FULL);
	EXPECT_EQ(flush_try_it(), -ETIMEDOUT);
	fabric_close(); /* the mapping keeps the lane */
	fake_fabric_set_reads(FAKE_READS_END);
	fabric_lane_progress(&flush_device->lanes[0]);
	EXPECT_EQ(fake_fabric_reads_closed(), 0);
	flush_close();
}

TEST(connection_in_queue,
     "If the flush of a connection waits for room until the device is closed, the flush fails.")
{
	struct fabric_connection *c;
	void *request;

	flush_open(FAKE_READS_FULL);
	c = flush_connect_receiver();
	EXPECT_EQ(fabric_flush(c, flush_memory, 1, flush_mapping, &request), 0);
	fabric_close();
	EXPECT_EQ(flush_finish(request), -ECONNABORTED);
	fabric_close_connection(c);
	flush_close();
}

TEST(queue_of_broken_pair,
     "A flush that waits for room in a pair that breaks ends with the pair, and is not posted.")
{
	struct fabric_connection *c;
	void *request;

	flush_open(FAKE_READS_FULL);
	c = flush_connect_receiver();
	EXPECT_EQ(fabric_flush(c, flush_memory, 1, flush_mapping, &request), 0);
	EXPECT_EQ(flush_try_it(), -ETIMEDOUT);
	fake_fabric_set_reads(FAKE_READS_END);
	EXPECT_EQ(flush_finish(request), -ECONNABORTED);
	fabric_close_connection(c);
	flush_close();
}

TEST(queue_of_closed_connection,
     "If a connection is closed while its flush waits for room, the connection's memory is free.")
{
	struct fabric_connection *c;
	void *request;

	flush_open(FAKE_READS_FULL);
	c = flush_connect_receiver();
	EXPECT_EQ(fabric_flush(c, flush_memory, 1, flush_mapping, &request), 0);
	fabric_close_connection(c);
	EXPECT_EQ(flush_device->users, 2); /* the mapping and the broken pair */
	flush_close();
}

TEST(trial_late, "The read of a trial may end when the device's pair of endpoints is closed.")
{
	flush_open(FAKE_READS_LOST);
	EXPECT_EQ(flush_try_it(), -ETIMEDOUT);
	fabric_close();
	fake_fabric_end_reads();
	fabric_lane_progress(&flush_device->lanes[0]);
	flush_close();
}

static const struct fault {
	const char *name;
	enum fake_reads reads;
	int error;
} faults[] = {
	{ "read_fails", FAKE_READS_FAIL, -EACCES },
	{ "read_does_not_end", FAKE_READS_HELD, -ETIMEDOUT },
	{ "read_is_lost", FAKE_READS_LOST, -ETIMEDOUT },
	{ "no_room", FAKE_READS_FULL, -ETIMEDOUT },
};

TEST_EACH(trial_recovers, struct fault, faults,
	  "After a trial that failed, a device flushes over a new pair of endpoints.")
{
	flush_open(row->reads);
	EXPECT_EQ(flush_try_it(), row->error);
	fake_fabric_set_reads(FAKE_READS_END);
	EXPECT_EQ(flush_try_it(), 0);
	EXPECT_EQ(fake_fabric_pairs(), 2);
	fake_fabric_end_reads();
	flush_close();
}

TEST(connection_recovers,
     "After a flush that failed, other connections of the device flush over a new pair.")
{
	struct fabric_connection *first, *second;

	flush_open(FAKE_READS_FAIL);
	first = flush_connect_receiver();
	second = flush_connect_receiver();
	EXPECT_EQ(flush_on(first), -EACCES);
	fake_fabric_set_reads(FAKE_READS_END);
	EXPECT_EQ(flush_on(first), -EACCES);
	EXPECT_EQ(flush_on(second), 0);
	EXPECT_EQ(fake_fabric_pairs(), 2);
	fabric_close_connection(first);
	fabric_close_connection(second);
	flush_close();
}

TEST(close_recovers, "If a connection is closed with a flush that does not end, the flush ends "
		     "with its pair, and other "
		     "connections flush over a new pair.")
{
	struct fabric_connection *c;
	void *request;

	flush_open(FAKE_READS_HELD);
	c = flush_connect_receiver();
	EXPECT_EQ(fabric_flush(c, flush_memory, 1, flush_mapping, &request), 0);
	fabric_close_connection(c);
	fake_fabric_set_reads(FAKE_READS_END);
	EXPECT_EQ(flush_try_it(), 0);
	flush_close();
}

TEST(pairs_limited, "A device whose pairs of endpoints break again and again makes eight.")
{
	flush_open(FAKE_READS_FAIL);
	for (int i = 0; i < PAIRS; i++)
		EXPECT_EQ(flush_try_it(), -EACCES);
	EXPECT_EQ(flush_try_it(), -EIO);
	EXPECT_EQ(fake_fabric_pairs(), PAIRS);
	flush_close();
}

static void *flush_try_pairs(void *unused)
{
	for (int i = 0; i < PAIRS; i++)
		EXPECT(flush_try_it());
	return unused;
}

TEST(threads, "While a thread breaks a pair, another thread posts no read to the pair.")
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;

		flush_open(FAKE_READS_FAIL);
		EXPECT_EQ(pthread_create(&thread, NULL, flush_try_pairs, NULL), 0);
		flush_try_pairs(NULL);
		pthread_join(thread, NULL);
		flush_close();
	}
}
