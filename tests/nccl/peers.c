/* SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"
#include "harness.h"
#include "process.h"
#include "proxy.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH 8
#define LARGEST (((size_t)4 << 20) + 1)

static const size_t sizes[] = {
	0,	1,	 512,	  4096,	   65535, 65536,   65537, 100000, 131073,
	300001, 1 << 20, 1000003, LARGEST, 2,	  LARGEST, 70000, 3,
};

#define COUNT (sizeof(sizes) / sizeof(sizes[0]))

static void *peers_host_alloc(size_t size)
{
	void *memory = malloc(size);

	EXPECT(memory);
	return memory;
}

static void peers_host_copy(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
}

static const struct peers_memory peers_host = {
	.kind = NCCL_PTR_HOST,
	.alloc = peers_host_alloc,
	.free = free,
	.write = peers_host_copy,
	.read = peers_host_copy,
};

void peers_begin(struct plugin *plugin, const char *provider, const char *interface)
{
	setenv("CLIMPORT_NET_PROVIDER", provider, 1);
	if (interface)
		setenv("CLIMPORT_NET_IFNAME", interface, 1);
	EXPECT(plugin_load(plugin, PLUGIN_NCCL, PLUGIN_NEWEST));
	EXPECT_EQ(plugin_init(plugin), 0);
}

struct move {
	struct pair *pair;
	const struct peers_memory *memory;
	bool sends;
	char *data, *bytes; /* DEPTH messages; a message where a CPU sees the message */
	void *mhandle;
	void *requests[DEPTH];
};

static void move_begin(struct move *move, int i)
{
	size_t size = sizes[(size_t)i % COUNT];
	char *message = move->data + (size_t)(i % DEPTH) * LARGEST;

	if (move->sends) {
		message_fill(move->bytes, size, (unsigned int)i);
		move->memory->write(message, move->bytes, size);
	}
	move->requests[i % DEPTH] =
		move->sends ? pair_send(move->pair, message, size, move->mhandle)
			    : pair_receive(move->pair, message, LARGEST, move->mhandle);
}

static void move_end(struct move *move, int i)
{
	size_t size = sizes[(size_t)i % COUNT];
	int moved = 0;

	EXPECT_EQ(pair_wait(move->pair, move->requests[i % DEPTH], &moved), 0);
	EXPECT_EQ(moved, size);
	if (move->sends)
		return;
	move->memory->read(move->bytes, move->data + (size_t)(i % DEPTH) * LARGEST, size);
	EXPECT(message_is(move->bytes, size, (unsigned int)i));
}

static void peers_move(struct pair *pair, bool sends, const struct peers *peers)
{
	const struct peers_memory *memory = peers->memory ? peers->memory : &peers_host;
	void *comm = sends ? pair->sender : pair->receiver;
	struct move move = { .pair = pair, .memory = memory, .sends = sends };
	int count = peers->rounds * (int)COUNT;

	move.data = memory->alloc(DEPTH * LARGEST);
	move.bytes = peers_host_alloc(LARGEST);
	EXPECT_EQ(plugin_register(pair->plugin, comm, move.data, DEPTH * LARGEST, memory->kind,
				  &move.mhandle),
		  0);
	for (int i = 0; i < count + DEPTH; i++) {
		if (i >= DEPTH)
			move_end(&move, i - DEPTH);
		if (i < count)
			move_begin(&move, i);
	}
	EXPECT_EQ(plugin_table(pair->plugin)->deregMr(comm, move.mhandle), 0);
	free(move.bytes);
	memory->free(move.data);
}

/* The network namespace of the process. */
static void namespace_enter(pid_t process)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	EXPECT(fd >= 0);
	EXPECT_EQ(setns(fd, CLONE_NEWNET), 0);
	close(fd);
}

/* The end of a connection that listens, and tells the other end its handle. */
static void peers_accept(const struct peers *peers, struct pair *pair, struct plugin *plugin)
{
	*pair = (struct pair){ .plugin = plugin };
	if (peers->memory)
		peers->memory->begin();
	peers_begin(plugin, peers->provider, peers->interface);
	EXPECT_EQ(plugin_listen(plugin, peers->device, pair->handle, &pair->listener), 0);
	if (peers->proxy_delay_us)
		proxy_start(pair->handle, (unsigned int)peers->proxy_delay_us);
	EXPECT_EQ(write(peers->channel, pair->handle, sizeof(pair->handle)), sizeof(pair->handle));
	while (!pair->receiver)
		EXPECT_EQ(plugin_accept(plugin, pair->listener, &pair->receiver), 0);
}

static void peers_connect(const struct peers *peers, struct pair *pair, struct plugin *plugin)
{
	*pair = (struct pair){ .plugin = plugin };
	if (peers->peer_namespace)
		namespace_enter(peers->peer_namespace);
	if (peers->memory)
		peers->memory->begin();
	peers_begin(plugin, peers->provider, peers->peer_interface);
	EXPECT_EQ(recv(peers->peer_channel, pair->handle, sizeof(pair->handle), MSG_WAITALL),
		  sizeof(pair->handle));
	while (!pair->sender)
		EXPECT_EQ(plugin_connect(plugin, peers->peer_device, pair->handle, &pair->sender),
			  0);
}

/* Each end closes what the end has opened. */
static void peers_close(struct pair *pair, struct plugin *plugin)
{
	pair_close(pair);
	EXPECT_EQ(plugin_finalize(plugin), 0);
}

pid_t peers_start(struct peers *peers, void (*peer)(const void *))
{
	int channels[2];
	pid_t child;

	alarm(TEST_HANG_S);
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, channels), 0);
	peers->channel = channels[0];
	peers->peer_channel = channels[1];
	child = test_start_child(peer, peers);
	EXPECT(child > 0);
	return child;
}

static void peers_send(const void *peers)
{
	struct plugin plugin;
	struct pair pair;

	alarm(TEST_HANG_S);
	peers_connect(peers, &pair, &plugin);
	peers_move(&pair, true, peers);
	peers_close(&pair, &plugin);
}

void peers_run(struct peers peers)
{
	struct plugin plugin;
	struct pair pair;
	int status;
	pid_t child = peers_start(&peers, peers_send);

	peers_accept(&peers, &pair, &plugin);
	peers_move(&pair, false, &peers);
	peers_close(&pair, &plugin);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

static void peers_connect_and_wait(const void *peers)
{
	struct plugin plugin;
	struct pair pair;

	alarm(TEST_HANG_S);
	peers_connect(peers, &pair, &plugin);
	for (;;)
		pause();
}

void peers_run_killed(struct peers peers)
{
	char data[64];
	struct plugin plugin;
	struct pair pair;
	void *mhandle;
	pid_t child = peers_start(&peers, peers_connect_and_wait);

	peers_accept(&peers, &pair, &plugin);
	EXPECT_EQ(plugin_register(&plugin, pair.receiver, data, sizeof(data), NCCL_PTR_HOST,
				  &mhandle),
		  0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_EQ(pair_wait(&pair, pair_receive(&pair, data, sizeof(data), mhandle), NULL),
		  NCCL_REMOTE_ERROR);
	EXPECT_EQ(plugin_table(&plugin)->deregMr(pair.receiver, mhandle), 0);
	peers_close(&pair, &plugin);
}

struct peers peers_swapped(const struct peers *peers)
{
	struct peers swapped = *peers;

	swapped.channel = peers->peer_channel;
	swapped.peer_channel = peers->channel;
	return swapped;
}

static void peers_accept_and_wait(const void *arg)
{
	struct peers peers = peers_swapped(arg);
	struct plugin plugin;
	struct pair pair;

	alarm(TEST_HANG_S);
	peers_accept(&peers, &pair, &plugin);
	for (;;)
		pause();
}

/* The first sends end in buffers of the network's. */
static enum nccl_result peers_send_until_error(struct pair *pair, char *data, void *mhandle)
{
	enum nccl_result result = NCCL_SUCCESS;
	void *request;

	while (!result) {
		request = NULL;
		result = plugin_send(pair->plugin, pair->sender, data, LARGEST, mhandle, &request);
		if (!result && request)
			result = pair_wait(pair, request, NULL);
	}
	return result;
}

void peers_run_killed_receiver(struct peers peers)
{
	char *data = calloc(1, LARGEST);
	struct plugin plugin;
	struct pair pair;
	void *mhandle;
	pid_t child = peers_start(&peers, peers_accept_and_wait);

	EXPECT(data);
	peers = peers_swapped(&peers);
	peers_connect(&peers, &pair, &plugin);
	EXPECT_EQ(plugin_register(&plugin, pair.sender, data, LARGEST, NCCL_PTR_HOST, &mhandle), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_EQ(peers_send_until_error(&pair, data, mhandle), NCCL_REMOTE_ERROR);
	EXPECT_EQ(plugin_table(&plugin)->deregMr(pair.sender, mhandle), 0);
	peers_close(&pair, &plugin);
	free(data);
}

#define REQUEST_CALLS 1000 /* after which the requests of all rails are under way */

static void peers_connect_in_vain(const void *arg)
{
	const struct peers *peers = arg;
	char handle[NCCL_NET_HANDLE_SIZE];
	enum nccl_result result = NCCL_SUCCESS;
	struct plugin plugin;
	void *sender = NULL;

	alarm(TEST_HANG_S);
	peers_begin(&plugin, peers->provider, peers->peer_interface);
	EXPECT_EQ(recv(peers->peer_channel, handle, sizeof(handle), MSG_WAITALL), sizeof(handle));
	for (int i = 0; i < REQUEST_CALLS; i++)
		EXPECT_EQ(plugin_connect(&plugin, peers->peer_device, handle, &sender), 0);
	EXPECT_EQ(write(peers->peer_channel, "", 1), 1);
	while (!result && !sender)
		result = plugin_connect(&plugin, peers->peer_device, handle, &sender);
	EXPECT_EQ(result, NCCL_REMOTE_ERROR);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
}

/* The limit is one of numbers: the shell may have left descriptors with large numbers open. */
static rlim_t peers_next_descriptor(const struct peers *peers)
{
	int next = dup(peers->channel);

	EXPECT(next >= 0);
	close(next);
	return (rlim_t)next;
}

/* The listener's end, with a connection that is not accepted. */
static void peers_refuse(const struct peers *peers, struct pair *pair, int accepts, int spare)
{
	enum nccl_result result = NCCL_SUCCESS;
	struct rlimit before;
	char ready;

	EXPECT_EQ(plugin_listen(pair->plugin, peers->device, pair->handle, &pair->listener), 0);
	EXPECT_EQ(write(peers->channel, pair->handle, sizeof(pair->handle)), sizeof(pair->handle));
	EXPECT_EQ(read(peers->channel, &ready, 1), 1);
	if (spare >= 0)
		process_limit_descriptors(peers_next_descriptor(peers) + (rlim_t)spare, &before);
	for (int i = 0; i < accepts && !result; i++)
		result = plugin_accept(pair->plugin, pair->listener, &pair->receiver);
	EXPECT(!pair->receiver);
	EXPECT_EQ(result, spare >= 0 ? NCCL_SYSTEM_ERROR : NCCL_SUCCESS);
	EXPECT_EQ(plugin_table(pair->plugin)->closeListen(pair->listener), 0);
	if (spare >= 0)
		setrlimit(RLIMIT_NOFILE, &before);
}

void peers_run_refused(struct peers peers, int accepts, int spare)
{
	struct plugin plugin;
	struct pair pair = { .plugin = &plugin };
	void *keeps_the_device;
	int descriptors, status;
	pid_t child = peers_start(&peers, peers_connect_in_vain);

	peers_begin(&plugin, peers.provider, peers.interface);
	EXPECT_EQ(plugin_listen(&plugin, peers.device, pair.handle, &keeps_the_device), 0);
	descriptors = process_count_descriptors();
	peers_refuse(&peers, &pair, accepts, spare);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(process_count_descriptors(), descriptors);
	EXPECT_EQ(plugin_table(&plugin)->closeListen(keeps_the_device), 0);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
}
