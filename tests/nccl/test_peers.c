/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin between two processes, over libfabric's tcp. */
#include "harness.h"
#include "pair.h"
#include "process.h"
#include "proxy.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
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

static void peer_begin(struct plugin *plugin, const char *interface)
{
	setenv("CLIMPORT_NET_PROVIDER", "tcp", 1);
	setenv("CLIMPORT_NET_IFNAME", interface, 1);
	EXPECT(plugin_load(plugin, PLUGIN_NCCL, PLUGIN_NEWEST));
	EXPECT_EQ(plugin_init(plugin), 0);
}

/* Up to DEPTH messages are under way; each has its own size and bytes. */
static void peer_move(struct pair *pair, bool sends, int rounds)
{
	char *data = malloc(DEPTH * LARGEST);
	void *requests[DEPTH];
	int count = rounds * (int)COUNT, size;

	EXPECT(data);
	for (int i = 0; i < count + DEPTH; i++) {
		char *message = data + i % DEPTH * LARGEST;
		int before = i - DEPTH;

		if (before >= 0) {
			size = 0;
			EXPECT_EQ(pair_wait(pair, requests[i % DEPTH], &size), 0);
			EXPECT_EQ(size, sizes[before % COUNT]);
			EXPECT(sends ||
			       message_is(message, sizes[before % COUNT], (unsigned int)before));
		}
		if (i >= count)
			continue;
		if (sends)
			message_fill(message, sizes[i % COUNT], (unsigned int)i);
		requests[i % DEPTH] = sends ? pair_send(pair, message, sizes[i % COUNT], NULL)
					    : pair_receive(pair, message, LARGEST, NULL);
	}
	free(data);
}

struct network {
	const char *interface, *peer_interface;
	int rounds;
	int proxy_delay_us;   /* -1: no proxy */
	pid_t peer_namespace; /* of the sender; 0: the receiver's */
	int channel, peer_channel;
};

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

static void peer_receive(const struct network *network)
{
	char handle[NCCL_NET_HANDLE_SIZE];
	struct plugin plugin;
	struct pair pair = { .plugin = &plugin };

	peer_begin(&plugin, network->interface);
	EXPECT_EQ(plugin_listen(&plugin, 0, handle, &pair.listener), 0);
	if (network->proxy_delay_us >= 0)
		proxy_start(handle, (unsigned int)network->proxy_delay_us);
	EXPECT_EQ(write(network->channel, handle, sizeof(handle)), sizeof(handle));
	while (!pair.receiver)
		EXPECT_EQ(plugin_accept(&plugin, pair.listener, &pair.receiver), 0);
	peer_move(&pair, false, network->rounds);
	pair_close(&pair);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
}

static void peer_send(const void *arg)
{
	const struct network *network = arg;
	char handle[NCCL_NET_HANDLE_SIZE];
	struct plugin plugin;
	struct pair pair = { .plugin = &plugin };

	alarm(100);
	if (network->peer_namespace)
		namespace_enter(network->peer_namespace);
	peer_begin(&plugin, network->peer_interface);
	EXPECT_EQ(recv(network->peer_channel, handle, sizeof(handle), MSG_WAITALL), sizeof(handle));
	while (!pair.sender)
		EXPECT_EQ(plugin_connect(&plugin, 0, handle, &pair.sender), 0);
	peer_move(&pair, true, network->rounds);
	EXPECT_EQ(plugin_table(&plugin)->closeSend(pair.sender), 0);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
}

/* In a child of the test, so that a test leaves no state. */
static void peers_run(struct network network)
{
	int channels[2], status;
	pid_t child;

	alarm(100);
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, channels), 0);
	network.channel = channels[0];
	network.peer_channel = channels[1];
	child = test_start_child(peer_send, &network);
	EXPECT(child > 0);
	peer_receive(&network);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

static void one_machine(void)
{
	peers_run((struct network){ "lo", "lo", 4, -1, 0, -1, -1 });
}

TEST(processes, "Messages of every size, several at once, go from a process to another.")
{
	test_in_child(one_machine);
}

static void through_proxy(void)
{
	peers_run((struct network){ "lo", "lo", 1, 2000, 0, -1, -1 });
}

TEST(proxy, "Messages are whole over a network that is slow and cuts data anywhere.")
{
	test_in_child(through_proxy);
}

/* The second namespace is that of a child, which waits to be killed. */
static pid_t namespace_start(void)
{
	int ready[2];
	char byte;
	pid_t child;

	EXPECT_EQ(pipe(ready), 0);
	child = fork();
	if (!child) {
		byte = unshare(CLONE_NEWNET) ? 'n' : 'y';
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(0);
	}
	EXPECT_EQ(read(ready[0], &byte, 1), 1);
	if (byte == 'n') {
		kill(child, SIGKILL);
		test_skip("no second network namespace");
	}
	return child;
}

static bool command_runs(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool command_runs(const char *format, ...)
{
	char command[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	return !system(command); // NOLINT(concurrency-mt-unsafe,cert-env33-c)
}

/* The kernel brings both ends up a moment later. */
#define LINK_IS_UP                                                             \
	"for i in $(seq 300); do ip link show net1 | grep -q \"state UP\" && " \
	"exit 0; sleep 0.1; done; exit 1"

/*
 * net0 in this process's new namespace, and net1 in the child's, side by side.  With @netem, a network
 * that loses packets.
 */
static pid_t namespaces_make(const char *netem)
{
	pid_t child;

	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET))
		test_skip("no network namespace may be made here");
	child = namespace_start();
	if (!command_runs("ip link add net0 type veth peer name net1 netns %d", child) ||
	    !command_runs("ip addr add 10.83.1.1/24 dev net0 && ip link set net0 up") ||
	    !command_runs("nsenter -t %d -n sh -c 'ip addr add 10.83.1.2/24 dev net1 && "
			  "ip link set net1 up && " LINK_IS_UP "'",
			  child)) {
		kill(child, SIGKILL);
		test_skip("ip(8) makes no veth here");
	}
	if (netem && !command_runs("tc qdisc add dev net0 root netem %s 2>/dev/null", netem)) {
		kill(child, SIGKILL);
		test_skip("the kernel has no netem");
	}
	return child;
}

static void namespaces_run(const char *netem, int rounds)
{
	pid_t space = namespaces_make(netem);

	peers_run((struct network){ "net0", "net1", rounds, -1, space, -1, -1 });
	kill(space, SIGKILL);
	waitpid(space, NULL, 0);
}

static void namespaces_plain(void)
{
	namespaces_run(NULL, 3);
}

TEST(namespaces, "Messages go from a network namespace to another.")
{
	test_in_child(namespaces_plain);
}

static void namespaces_loss(void)
{
	namespaces_run("delay 2ms 1ms loss 1%", 1);
}

TEST(namespaces_loss, "Messages are whole over a network with delay that loses packets.")
{
	test_in_child(namespaces_loss);
}

static void peer_connect_for_ever(const void *channel)
{
	char handle[NCCL_NET_HANDLE_SIZE];
	struct plugin plugin;
	void *sender = NULL;

	alarm(100);
	peer_begin(&plugin, "lo");
	EXPECT_EQ(recv(*(const int *)channel, handle, sizeof(handle), MSG_WAITALL), sizeof(handle));
	while (!sender)
		EXPECT_EQ(plugin_connect(&plugin, 0, handle, &sender), 0);
	for (;;)
		pause();
}

static void peer_is_killed(void)
{
	char handle[NCCL_NET_HANDLE_SIZE], data[64];
	struct plugin plugin;
	struct pair pair = { .plugin = &plugin };
	int channels[2];
	pid_t child;

	alarm(100);
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, channels), 0);
	child = test_start_child(peer_connect_for_ever, &channels[1]);
	peer_begin(&plugin, "lo");
	EXPECT_EQ(plugin_listen(&plugin, 0, handle, &pair.listener), 0);
	EXPECT_EQ(write(channels[0], handle, sizeof(handle)), sizeof(handle));
	while (!pair.receiver)
		EXPECT_EQ(plugin_accept(&plugin, pair.listener, &pair.receiver), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_EQ(pair_wait(&pair, pair_receive(&pair, data, sizeof(data), NULL), NULL),
		  NCCL_REMOTE_ERROR);
	pair_close(&pair);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
}

TEST(peer_is_killed, "A receive fails with a remote error if the sender is killed.")
{
	test_in_child(peer_is_killed);
}
