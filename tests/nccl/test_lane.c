/* SPDX-License-Identifier: Apache-2.0 */
/* A lane alone, over an endpoint and a completion queue of the test's. */
#include "harness.h"
#include "nccl/libfabric/fabric.h"

static int lane_sends;

static ssize_t lane_fake_sendv(struct fid_ep *endpoint, const struct iovec *vectors,
			       void **descriptors, size_t count, fi_addr_t address, void *context)
{
	(void)endpoint, (void)vectors, (void)descriptors, (void)count, (void)address, (void)context;
	lane_sends++;
	return 0;
}

static ssize_t lane_fake_read(struct fid_cq *queue, void *entries, size_t count)
{
	(void)queue, (void)entries, (void)count;
	return -FI_EAGAIN;
}

static struct fi_ops_msg lane_fake_messages = { .sendv = lane_fake_sendv };
static struct fi_ops_cq lane_fake_completions = { .read = lane_fake_read };
static struct fid_ep lane_endpoint = { .msg = &lane_fake_messages };
static struct fid_cq lane_queue = { .ops = &lane_fake_completions };

/* Another caller than the lane's thread finds a message in the queue. */
static void lane_find_queued(bool threaded)
{
	struct fabric_lane lane = {
		.cq = &lane_queue,
		.queue_lock = PTHREAD_MUTEX_INITIALIZER,
		.post_lock = PTHREAD_MUTEX_INITIALIZER,
		.is_threaded = threaded,
	};
	struct fabric_rail rail = { .endpoint = &lane_endpoint, .lane = &lane };
	struct fabric_operation send = { .rail = &rail, .kind = FABRIC_SEND, .count = 1 };

	lane.first = lane.last = &send;
	atomic_store(&send.state, FABRIC_QUEUED);
	lane_sends = 0;
	fabric_lane_progress(&lane);
}

TEST(lane_with_thread,
     "What is queued is posted by the lane's thread alone, which sleeps while nothing is posted.")
{
	lane_find_queued(true);
	EXPECT_EQ(lane_sends, 0);
}

TEST(lane_without_thread, "What is queued is posted by whoever drives a lane without a thread.")
{
	lane_find_queued(false);
	EXPECT_EQ(lane_sends, 1);
}
