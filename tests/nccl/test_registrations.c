/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many registrations of GPU memory, of a GPU or of the fake libcuda, over the transport of loopback.c.
 * tests/gpu/nccl runs this program, too.
 */
#include "CL/climport.h"
#include "harness.h"
#include "loopback.h"
#include "nccl_gpu.h"
#include "plugin.h"
#include "process.h"

#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#define CYCLES 10000
#define SIZE ((size_t)65536)
#define NOISE ((size_t)16 << 20) /* of the free memory of a GPU that others use */

static struct plugin plugin;
static void *listener, *sender, *receiver;
static loopback_counts_fn registrations_counts;

struct registrations_state {
	int descriptors;
	size_t gpu_free;
};

static struct registrations_state registrations_state(void)
{
	struct registrations_state now = { .descriptors = process_count_descriptors() };
	size_t total;

	EXPECT_EQ(nccl_gpu.memory_info(&now.gpu_free, &total), 0);
	return now;
}

static void registrations_open(void)
{
	static bool tried, is_open;
	char handle[NCCL_NET_HANDLE_SIZE];

	if (!tried)
		is_open = nccl_gpu_open();
	tried = true;
	if (!is_open)
		test_skip("there is no GPU");
	EXPECT(plugin_load(&plugin, PLUGIN_LOOPBACK, PLUGIN_NEWEST));
	*(void **)&registrations_counts = dlsym(plugin.library, "loopback_counts");
	EXPECT_EQ(plugin_init(&plugin), 0);
	EXPECT_EQ(plugin_listen(&plugin, 0, handle, &listener), 0);
	sender = receiver = NULL;
	while (!sender)
		EXPECT_EQ(plugin_connect(&plugin, 0, handle, &sender), 0);
	EXPECT_EQ(plugin_accept(&plugin, listener, &receiver), 0);
}

static void registrations_close(void)
{
	const struct nccl_net_v6 *table = plugin_table(&plugin);

	EXPECT_EQ(table->closeSend(sender), 0);
	EXPECT_EQ(table->closeRecv(receiver), 0);
	EXPECT_EQ(table->closeListen(listener), 0);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
	plugin_unload(&plugin);
}

static void registrations_cycle(uint64_t memory, size_t size)
{
	void *mhandle, *data = (void *)(uintptr_t)memory; // NOLINT(performance-no-int-to-ptr)

	EXPECT_EQ(plugin_register(&plugin, sender, data, size, NCCL_PTR_CUDA, &mhandle), 0);
	EXPECT_EQ(registrations_counts().mappings, 1);
	EXPECT_EQ(plugin_table(&plugin)->deregMr(sender, mhandle), 0);
}

/* Parts of one allocation. */
static void registrations_same(int i)
{
	static uint64_t memory;

	if (!i)
		EXPECT_EQ(nccl_gpu.alloc(&memory, SIZE), 0);
	registrations_cycle(memory + (uint64_t)i % SIZE, SIZE - (size_t)i % SIZE);
	if (i == CYCLES)
		EXPECT_EQ(nccl_gpu.free(memory), 0);
}

/* An allocation for each registration, which is freed before the library knows. */
static void registrations_new(int i)
{
	size_t size = (size_t)(1 + i % 3) * SIZE;
	uint64_t memory;

	EXPECT_EQ(nccl_gpu.alloc(&memory, size), 0);
	registrations_cycle(memory, size);
	EXPECT_EQ(nccl_gpu.free(memory), 0);
}

/* A dma-buf of the core's, which the core closes at once. */
static void registrations_dmabuf(int i)
{
	static uint64_t memory;
	void *mhandle;
	int fd;

	if (!i)
		EXPECT_EQ(nccl_gpu.alloc(&memory, SIZE), 0);
	EXPECT_EQ(nccl_gpu.export(&fd, memory, SIZE, NCCL_GPU_DMA_BUF, 0), 0);
	EXPECT_EQ(plugin_table(&plugin)->regMrDmaBuf(
			  sender, (void *)(uintptr_t)memory, // NOLINT(performance-no-int-to-ptr)
			  SIZE, NCCL_PTR_CUDA, 0, fd, &mhandle),
		  0);
	close(fd);
	EXPECT_EQ(plugin_table(&plugin)->deregMr(sender, mhandle), 0);
	if (i == CYCLES)
		EXPECT_EQ(nccl_gpu.free(memory), 0);
}

struct kind {
	const char *name;
	void (*cycle)(int i);
};

static const struct kind kinds[] = {
	{ "same", registrations_same },
	{ "new", registrations_new },
	{ "dmabuf", registrations_dmabuf },
};

static double registrations_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now); /* time: figures */
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

TEST_EACH(cycles, struct kind, kinds,
	  "10,000 registrations leave no descriptor, no mapping and no memory of the GPU.")
{
	struct registrations_state before, after;
	struct climport_stats stats;
	double begin;

	registrations_open();
	before = registrations_state();
	begin = registrations_seconds();
	for (int i = 0; i <= CYCLES; i++)
		row->cycle(i);
	printf("# %s: %.2f us each, with the allocation if new\n", row->name,
	       (registrations_seconds() - begin) / CYCLES * 1e6);
	climport_invalidate(NULL, SIZE_MAX);
	after = registrations_state();
	EXPECT_EQ(after.descriptors, before.descriptors);
	EXPECT_EQ(registrations_counts().mappings, 0);
	EXPECT(after.gpu_free + NOISE >= before.gpu_free);
	EXPECT_EQ(climport_get_stats(&stats, sizeof(stats)), 0);
	EXPECT_EQ(stats.bytes_pinned, 0);
	registrations_close();
}
