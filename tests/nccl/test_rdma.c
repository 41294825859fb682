/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin over the adapters of a machine, by libfabric's verbs: `make check-rdma` with a user's
 * adapters, make check with soft-RoCE in the guest.
 *
 * In the environment: CLIMPORT_NET_PROVIDER, another provider; RDMA_OFFERS, there has to be an
 * adapter, and each has to offer these kinds of memory (NCCL_PTR_*).
 */
#include "CL/climport.h"
#include "harness.h"
#include "nccl_gpu.h"
#include "peers.h"
#include "process.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_ADAPTERS 16

struct rdma_adapter {
	char name[64];
	int kinds; /* NCCL_PTR_* */
	int speed; /* Mbit/s */
};

struct rdma_found {
	int count; /* -1: the plugin does not start */
	struct rdma_adapter adapters[MAX_ADAPTERS];
};

static const char *rdma_provider(void)
{
	const char *provider = getenv("CLIMPORT_NET_PROVIDER");

	return provider && *provider ? provider : "verbs";
}

static void rdma_look(struct rdma_found *found)
{
	struct nccl_net_properties_v12 properties;
	struct plugin plugin;

	found->count = -1;
	nccl_gpu_open();
	setenv("CLIMPORT_NET_PROVIDER", rdma_provider(), 1);
	if (!plugin_load(&plugin, PLUGIN_NCCL, PLUGIN_NEWEST) || plugin_init(&plugin))
		return;
	found->count = plugin_devices(&plugin);
	for (int i = 0; i < found->count && i < MAX_ADAPTERS; i++) {
		EXPECT_EQ(plugin_properties(&plugin, i, &properties), 0);
		snprintf(found->adapters[i].name, sizeof(found->adapters[i].name), "%s",
			 properties.name);
		found->adapters[i].kinds = properties.ptrSupport;
		found->adapters[i].speed = properties.speed;
	}
	EXPECT_EQ(plugin_finalize(&plugin), 0);
}

/* A child looks, since CUDA and verbs outlive no fork(). */
static const struct rdma_found *rdma_find(void)
{
	static struct rdma_found *found;
	int status;
	pid_t child;

	if (found)
		return found;
	found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	EXPECT(found != MAP_FAILED);
	child = test_start_child((void (*)(const void *))rdma_look, found);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	return found;
}

/* Skips the test if there is no adapter. */
static const struct rdma_found *rdma_need(void)
{
	const struct rdma_found *found = rdma_find();

	if (getenv("RDMA_OFFERS"))
		EXPECT(found->count > 0);
	if (found->count <= 0)
		test_skip("libfabric's provider %s has no adapter with an IP address here",
			  rdma_provider());
	return found;
}

static const char *rdma_kinds_text(int kinds)
{
	if (kinds & NCCL_PTR_DMABUF)
		return "host memory and GPU memory";
	return kinds & NCCL_PTR_CUDA ? "host memory and CUDA pointers" : "host memory";
}

TEST(found, "Each adapter that the plugin finds offers host memory, and what was asked for.")
{
	const struct rdma_found *found = rdma_need();
	const char *offers = getenv("RDMA_OFFERS");

	for (int i = 0; i < found->count; i++) {
		const struct rdma_adapter *adapter = &found->adapters[i];

		printf("# %s by %s: %d Mbit/s, takes %s\n", adapter->name, rdma_provider(),
		       adapter->speed, rdma_kinds_text(adapter->kinds));
		EXPECT(adapter->kinds & NCCL_PTR_HOST);
		EXPECT_EQ(adapter->kinds, offers ? atoi(offers) : adapter->kinds);
	}
}

/* Of each adapter, in a child of the test: verbs outlives no fork(). */
static struct peers rdma_peers;
static void (*rdma_run)(struct peers peers);

static void rdma_run_peers(void)
{
	rdma_run(rdma_peers);
}

/* @kind: of the memory that the adapters have to take.  The number of these adapters. */
static int rdma_each_peers(struct peers peers, int kind, void (*run)(struct peers peers))
{
	const struct rdma_found *found = rdma_need();
	int count = 0;

	peers.provider = rdma_provider();
	rdma_run = run;
	for (int i = 0; i < found->count; i++) {
		if (!(found->adapters[i].kinds & kind))
			continue;
		peers.device = peers.peer_device = i;
		rdma_peers = peers;
		test_in_child(rdma_run_peers);
		count++;
	}
	return count;
}

TEST(processes, "Messages of every size, several at once, go over each adapter to another process.")
{
	rdma_each_peers((struct peers){ .rounds = 1 }, NCCL_PTR_HOST, peers_run);
}

static void *rdma_memory_alloc(size_t size)
{
	void *memory;

	EXPECT_EQ(climport_alloc(CLIMPORT_DEVICE, size, 0, nccl_gpu.uuid, &memory), 0);
	return memory;
}

/* A dma-buf of the fake libcuda has the bytes that an adapter sees. */
static void rdma_fake_copy(const void *device, void *host, size_t size, bool writes)
{
	struct climport_registration r;
	off_t at;

	EXPECT_EQ(climport_register(device, size, 0, &r, sizeof(r)), 0);
	at = (off_t)(r.offset + (size_t)((const char *)device - (const char *)r.base));
	EXPECT_EQ(writes ? pwrite(r.fd, host, size, at) : pread(r.fd, host, size, at), size);
	climport_unregister(&r);
}

static void rdma_memory_copy(const void *device, void *host, size_t size, bool writes)
{
	int result;

	if (!size)
		return;
	if (nccl_gpu.is_fake) {
		rdma_fake_copy(device, host, size, writes);
		return;
	}
	result = writes ? nccl_gpu.to_device((uintptr_t)device, host, size)
			: nccl_gpu.to_host(host, (uintptr_t)device, size);
	EXPECT_EQ(result, 0);
	EXPECT_EQ(nccl_gpu.synchronize(), 0);
}

static void rdma_memory_write(void *to, const void *from, size_t size)
{
	rdma_memory_copy(to, (void *)from, size, true);
}

static void rdma_memory_read(void *to, const void *from, size_t size)
{
	rdma_memory_copy(from, to, size, false);
}

static void rdma_memory_begin(void)
{
	EXPECT(nccl_gpu_open());
}

static const struct peers_memory rdma_memory = {
	.kind = NCCL_PTR_CUDA,
	.begin = rdma_memory_begin,
	.alloc = rdma_memory_alloc,
	.free = climport_free,
	.write = rdma_memory_write,
	.read = rdma_memory_read,
};

TEST(gpu, "Messages of every size go from GPU memory over each adapter to GPU memory.")
{
	if (!rdma_each_peers((struct peers){ .memory = &rdma_memory, .rounds = 1 }, NCCL_PTR_CUDA,
			     peers_run))
		test_skip("no adapter takes GPU memory, see the plugin's lines");
}

/* Likewise a pair in one process. */
static int rdma_device;
static void (*rdma_body)(struct pair *pair);

static void rdma_pair_run(void)
{
	struct plugin plugin;
	struct pair pair;

	nccl_gpu_open();
	peers_begin(&plugin, rdma_provider(), NULL);
	pair_open_on(&pair, &plugin, rdma_device);
	rdma_body(&pair);
	pair_close(&pair);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
}

/* @kind: of the memory that the adapters have to take.  The number of these adapters. */
static int rdma_each_of(int kind, void (*body)(struct pair *pair))
{
	const struct rdma_found *found = rdma_need();
	int count = 0;

	rdma_body = body;
	for (rdma_device = 0; rdma_device < found->count; rdma_device++) {
		if (!(found->adapters[rdma_device].kinds & kind))
			continue;
		test_in_child(rdma_pair_run);
		count++;
	}
	return count;
}

static void rdma_each(void (*body)(struct pair *pair))
{
	rdma_each_of(NCCL_PTR_HOST, body);
}

/* Over verbs alone. */
static void rdma_need_verbs(void)
{
	if (strcmp(rdma_provider(), "verbs") != 0)
		test_skip("another provider than verbs");
}

static const char *rdma_adapter_name(void)
{
	return rdma_find()->adapters[rdma_device].name;
}

/* How often the adapter had no receive for what arrived; the kernel reads the counter anew after 10 ms. */
static long rdma_count_not_ready(void)
{
	char path[256];
	long count = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/rcvd_rnr_err",
		 rdma_adapter_name());
	usleep(20000); /* time: the kernel keeps the counter's last reading for 10 ms */
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%ld", &count) != 1) // NOLINT(cert-err34-c)
		count = -1;
	fclose(file);
	return count;
}

static void rdma_not_ready(struct pair *pair)
{
	long before = rdma_count_not_ready();

	if (before < 0) {
		printf("# %s has no such counter\n", rdma_adapter_name());
		return;
	}
	for (size_t i = 1; i <= 20; i++)
		pair_exchange(pair, i * 100000, i * 100000);
	EXPECT_EQ(rdma_count_not_ready(), before);
}

TEST(not_ready, "No part of a large message arrives before the receiver has posted the part.")
{
	rdma_need_verbs();
	rdma_each(rdma_not_ready);
}

#define FLUSH_SIZE ((size_t)1 << 20)

/* A receive into GPU memory, and flushes of several at once. */
static void rdma_flush_received(struct pair *pair, char *memory, void *to)
{
	char *bytes = malloc(FLUSH_SIZE);
	void *from, *flushes[NCCL_NET_MAX_REQUESTS];

	EXPECT(bytes);
	message_fill(bytes, FLUSH_SIZE, 5);
	EXPECT_EQ(plugin_register(pair->plugin, pair->sender, bytes, FLUSH_SIZE, NCCL_PTR_HOST,
				  &from),
		  0);
	EXPECT_EQ(pair_finish(pair, pair_send(pair, bytes, FLUSH_SIZE, from),
			      pair_receive(pair, memory, FLUSH_SIZE, to)),
		  FLUSH_SIZE);
	for (int i = 0; i < NCCL_NET_MAX_REQUESTS; i++) {
		EXPECT_EQ(plugin_flush(pair->plugin, pair->receiver, memory + i, FLUSH_SIZE / 2, to,
				       &flushes[i]),
			  0);
		EXPECT(flushes[i]);
	}
	for (int i = NCCL_NET_MAX_REQUESTS - 1; i >= 0; i--)
		EXPECT_EQ(pair_wait(pair, flushes[i], NULL), 0);
	rdma_memory_read(bytes, memory, FLUSH_SIZE);
	EXPECT(message_is(bytes, FLUSH_SIZE, 5));
	EXPECT_EQ(plugin_table(pair->plugin)->deregMr(pair->sender, from), 0);
	free(bytes);
}

/* The adapter checks an address that the adapter reads. */
static void rdma_flush_outside(struct pair *pair, char *memory, void *to)
{
	void *request;

	EXPECT_EQ(plugin_flush(pair->plugin, pair->receiver, memory + ((size_t)1 << 40), 1, to,
			       &request),
		  0);
	EXPECT(request);
	EXPECT(pair_wait(pair, request, NULL));
}

static void rdma_flush(struct pair *pair)
{
	char *memory = rdma_memory_alloc(FLUSH_SIZE);
	void *to, *request;

	EXPECT_EQ(plugin_register(pair->plugin, pair->receiver, memory, FLUSH_SIZE, NCCL_PTR_CUDA,
				  &to),
		  0);
	EXPECT_EQ(plugin_flush(pair->plugin, pair->receiver, memory, 0, to, &request), 0);
	EXPECT(!request);
	for (int i = 0; i < 5; i++)
		rdma_flush_received(pair, memory, to);
	rdma_flush_outside(pair, memory, to);
	EXPECT_EQ(plugin_table(pair->plugin)->deregMr(pair->receiver, to), 0);
	climport_free(memory);
}

TEST(flush, "After a receive into GPU memory a flush reads the memory by the adapter.")
{
	if (!rdma_each_of(NCCL_PTR_CUDA, rdma_flush))
		test_skip("no adapter takes GPU memory, see the plugin's lines");
}

static void rdma_not_dmabuf(struct pair *pair)
{
	const struct nccl_net_v12 *table = pair->plugin->table;
	int fd = memfd_create("no-dmabuf", MFD_CLOEXEC);
	char data[4096];
	void *mhandle = NULL;

	EXPECT(fd >= 0 && !ftruncate(fd, sizeof(data)));
	EXPECT(table->regMrDmaBuf(pair->receiver, data, sizeof(data), NCCL_PTR_CUDA, 0, fd,
				  &mhandle));
	EXPECT(!mhandle);
	close(fd);
	pair_exchange(pair, 100000, 100000);
}

TEST(not_dmabuf, "A descriptor that is no dma-buf is refused, and the connection goes on.")
{
	rdma_each(rdma_not_dmabuf);
}

static void rdma_not_registered(struct pair *pair)
{
	char data[64] = "";
	void *request = NULL;

	EXPECT(plugin_send(pair->plugin, pair->sender, data, sizeof(data), NULL, &request));
	EXPECT(plugin_receive(pair->plugin, pair->receiver, data, sizeof(data), NULL, &request));
	EXPECT(!request);
	pair_finish(pair, pair_send(pair, NULL, 0, NULL), pair_receive(pair, NULL, 0, NULL));
	pair_exchange(pair, 100, 100);
}

TEST(not_registered, "A message in memory that is not registered is refused; an empty one is not.")
{
	rdma_need_verbs();
	rdma_each(rdma_not_registered);
}

static void rdma_close_early(struct pair *pair)
{
	static char data[2 << 20];
	int descriptors = process_count_descriptors();
	struct pair second = *pair;
	void *mhandle;

	pair_connect(&second);
	EXPECT_EQ(plugin_register(pair->plugin, second.receiver, data, sizeof(data), NCCL_PTR_HOST,
				  &mhandle),
		  0);
	for (int i = 0; i < 8; i++)
		pair_receive(&second, data, 1 << 20, mhandle);
	pair_send(&second, data + (1 << 20), 1 << 20, mhandle);
	pair_send(&second, data + (1 << 20), 100, mhandle);
	EXPECT_EQ(plugin_table(pair->plugin)->closeSend(second.sender), 0);
	EXPECT_EQ(plugin_table(pair->plugin)->closeRecv(second.receiver), 0);
	EXPECT_EQ(plugin_table(pair->plugin)->deregMr(pair->sender, mhandle), 0);
	EXPECT_EQ(process_count_descriptors(), descriptors);
	pair_exchange(pair, 1 << 20, 1 << 20);
}

TEST(close_early, "A connection that is closed with requests leaves no descriptor.")
{
	rdma_each(rdma_close_early);
}

TEST(peer_is_killed, "A receive fails with a remote error if the sender is killed.")
{
	rdma_each_peers((struct peers){ 0 }, NCCL_PTR_HOST, peers_run_killed);
}

TEST(receiver_is_killed, "A send fails with a remote error if the receiver is killed.")
{
	rdma_each_peers((struct peers){ 0 }, NCCL_PTR_HOST, peers_run_killed_receiver);
}

TEST(kills, "After the end of a process each request of the other process's ends, later ones fail.")
{
	rdma_each_peers((struct peers){ 0 }, NCCL_PTR_HOST, peers_run_kills);
}

static void rdma_child_init(void)
{
	struct plugin plugin;

	EXPECT(plugin_load(&plugin, PLUGIN_NCCL, PLUGIN_NEWEST));
	EXPECT(plugin_init(&plugin));
}

static void rdma_fork(struct pair *pair)
{
	test_in_child(rdma_child_init);
	pair_exchange(pair, 1 << 20, 1 << 20);
}

TEST(fork, "A child of fork() has no adapter that its parent has used, and the parent's go on.")
{
	rdma_need_verbs();
	rdma_each(rdma_fork);
}
