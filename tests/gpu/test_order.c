/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host and kernels in turns.  A GPU may cache host memory that a kernel has read, and no
 * OpenCL call empties the cache (docs/nvidia.md).  The layer must empty the cache.
 */
#include "gpu.h"

#define SIZE ((size_t)64 << 10)
#define COUNT (SIZE / sizeof(uint32_t))
#define ROUNDS 200

/* Imports of fresh memory: out, a, b. */
struct three {
	struct host host[3];
	cl_mem mem[3];
};

static void three_open(struct three *t)
{
	for (int i = 0; i < 3; i++) {
		host_alloc(&t->host[i], HOST_MMAP, SIZE);
		t->mem[i] = gpu_import_host(&ours, t->host[i].memory, SIZE);
	}
}

static void three_close(const struct three *t)
{
	for (int i = 0; i < 3; i++) {
		clReleaseMemObject(t->mem[i]);
		host_free(&t->host[i]);
	}
}

static void three_rewrite(const struct three *t)
{
	random_fill(t->host[1].seen, SIZE);
	random_fill(t->host[2].seen, SIZE);
	memset(t->host[0].seen, 0xa5, SIZE);
}

static bool is_right(const struct three *t)
{
	return is_sum(t->host[0].seen, t->host[1].seen, t->host[2].seen, COUNT);
}

TEST(rewrites, "A kernel sees the host's last bytes in three imports, 200 times.")
{
	struct three t;

	gpu_session_open(&ours);
	three_open(&t);
	for (int round = 0; round < ROUNDS; round++) {
		three_rewrite(&t);
		gpu_add(&ours, ours.queue, t.mem, COUNT, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT(is_right(&t));
	}
	three_close(&t);
	gpu_session_close(&ours);
}

TEST(rewrites_two_queues, "A kernel sees the host's last bytes, on two queues in turns.")
{
	cl_command_queue queue[2];
	struct three t;

	gpu_session_open(&ours);
	queue[0] = ours.queue;
	queue[1] = gpu_session_queue(&ours, 0);
	three_open(&t);
	for (int round = 0; round < ROUNDS; round++) {
		three_rewrite(&t);
		gpu_add(&ours, queue[round % 2], t.mem, COUNT, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(queue[round % 2]), CL_SUCCESS);
		EXPECT(is_right(&t));
	}
	three_close(&t);
	clReleaseCommandQueue(queue[1]);
	gpu_session_close(&ours);
}

static cl_command_queue order_create_queue(void)
{
	cl_command_queue_properties can = 0;

	clGetDeviceInfo(gpu.device, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, sizeof(can), &can, NULL);
	if (!(can & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE))
		test_skip("the device has no queues that run out of order");
	return gpu_session_queue(&ours, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

TEST(rewrites_out_of_order,
     "A kernel on an out-of-order queue sees the host's last bytes, if events order the commands.")
{
	cl_command_queue queue;
	struct three t;
	cl_event first, second;

	gpu_session_open(&ours);
	queue = order_create_queue();
	three_open(&t);
	for (int round = 0; round < ROUNDS; round++) {
		const cl_mem again[3] = { t.mem[2], t.mem[0], t.mem[1] }; /* b = out + a */
		uint32_t b[COUNT];

		three_rewrite(&t);
		memcpy(b, t.host[2].seen, SIZE);
		gpu_add(&ours, queue, t.mem, COUNT, AT_ONCE, &first);
		gpu_add(&ours, queue, again, COUNT, (struct after){ 1, &first }, &second);
		EXPECT_EQ(clWaitForEvents(1, &second), CL_SUCCESS);
		EXPECT(is_sum(t.host[0].seen, t.host[1].seen, b, COUNT));
		EXPECT(is_sum(t.host[2].seen, t.host[0].seen, t.host[1].seen, COUNT));
		clReleaseEvent(first);
		clReleaseEvent(second);
	}
	three_close(&t);
	clReleaseCommandQueue(queue);
	gpu_session_close(&ours);
}

TEST(rewrites_late, "A kernel that waits for a user event sees the bytes written before the event.")
{
	struct three t;
	cl_int err;

	gpu_session_open(&ours);
	three_open(&t);
	for (int round = 0; round < ROUNDS; round++) {
		cl_event gate = clCreateUserEvent(ours.context, &err);

		EXPECT_EQ(err, CL_SUCCESS);
		gpu_add(&ours, ours.queue, t.mem, COUNT, AT_ONCE, NULL); /* reads the old bytes */
		gpu_add(&ours, ours.queue, t.mem, COUNT, (struct after){ 1, &gate }, NULL);
		EXPECT_EQ(clFlush(ours.queue), CL_SUCCESS);
		three_rewrite(&t);
		EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT(is_right(&t));
		clReleaseEvent(gate);
	}
	three_close(&t);
	gpu_session_close(&ours);
}

/* The bytes of the last command on a queue are visible after clFinish() of all queues. */
static void finish_all(const cl_command_queue *queue, int queues)
{
	for (int i = 0; i < queues; i++)
		EXPECT_EQ(clFlush(queue[i]), CL_SUCCESS);
	for (int i = 0; i < queues; i++)
		EXPECT_EQ(clFinish(queue[i]), CL_SUCCESS);
}

/* 200 increments in turn, ordered by the queue, or by events if @by_events. */
static void order_run_chain(const cl_command_queue *queue, int queues, bool by_events)
{
	unsigned char before[SIZE];
	cl_event last = NULL, next = NULL;
	struct host h;
	cl_mem mem;

	host_alloc(&h, HOST_MMAP, SIZE);
	random_fill(h.seen, SIZE);
	memcpy(before, h.seen, SIZE);
	mem = gpu_import_host(&ours, h.memory, SIZE);
	for (int i = 0; i < ROUNDS; i++) {
		struct after after = { last ? 1 : 0, &last };

		gpu_increment(&ours, queue[i % queues], mem, SIZE, after, by_events ? &next : NULL);
		EXPECT_EQ(clFlush(queue[i % queues]), CL_SUCCESS);
		if (last)
			clReleaseEvent(last);
		last = next;
	}
	finish_all(queue, queues);
	if (last)
		clReleaseEvent(last);
	EXPECT(is_added(h.seen, before, SIZE, ROUNDS));
	clReleaseMemObject(mem);
	host_free(&h);
}

TEST(chained, "Kernels in a row lose no update, without a wait between.")
{
	gpu_session_open(&ours);
	order_run_chain(&ours.queue, 1, false);
	gpu_session_close(&ours);
}

TEST(chained_two_queues, "Kernels on two queues that are chained by events lose no update.")
{
	cl_command_queue queue[2];

	gpu_session_open(&ours);
	queue[0] = ours.queue;
	queue[1] = gpu_session_queue(&ours, 0);
	order_run_chain(queue, 2, true);
	clReleaseCommandQueue(queue[1]);
	gpu_session_close(&ours);
}

TEST(chained_out_of_order,
     "Kernels on a queue out of order that are chained by events lose no update.")
{
	cl_command_queue queue;

	gpu_session_open(&ours);
	queue = order_create_queue();
	order_run_chain(&queue, 1, true);
	clReleaseCommandQueue(queue);
	gpu_session_close(&ours);
}
