/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin between two processes, over libfabric's tcp.  With NETEM=1 in the environment the kernel
 * has to have netem.
 */
#include "harness.h"
#include "peers.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

static void one_machine(void)
{
	peers_run((struct peers){
		.provider = "tcp", .interface = "lo", .peer_interface = "lo", .rounds = 4 });
}

TEST(processes, "Messages of every size, several at once, go from a process to another.")
{
	test_in_child(one_machine);
}

static void through_proxy(void)
{
	peers_run((struct peers){ .provider = "tcp",
				  .interface = "lo",
				  .peer_interface = "lo",
				  .rounds = 1,
				  .proxy_delay_us = 2000 });
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
/* time: between two looks */
#define LINK_IS_UP                                                             \
	"for i in $(seq 300); do ip link show net1 | grep -q \"state UP\" && " \
	"exit 0; sleep 0.1; done; exit 1"

struct network {
	const char *name, *address, *peer_address, *netem;
	int rounds;
};

static const struct network networks[] = {
	{ "ipv4", "10.83.1.1/24", "10.83.1.2/24", NULL, 3 },
	{ "ipv6", "fd00:83::1/64 nodad", "fd00:83::2/64 nodad", NULL, 1 },
	{ "link_local", "fe80::83:1/64 nodad", "fe80::83:2/64 nodad", NULL, 1 },
};

static const struct network network_with_loss = {
	NULL, "10.83.1.1/24", "10.83.1.2/24", "delay 2ms 1ms loss 1%", 1,
};

/* net0 in this process's new namespace, and net1, which has another number, in the child's. */
static pid_t namespaces_make(const struct network *network)
{
	pid_t child;

	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET))
		test_skip("no network namespace may be made here");
	child = namespace_start();
	if (!command_runs("ip link add spare0 type veth peer name spare1") ||
	    !command_runs("ip link add net0 type veth peer name net1 netns %d", child) ||
	    !command_runs("ip addr add dev net0 %s && ip link set net0 up", network->address) ||
	    !command_runs("nsenter -t %d -n sh -c 'ip addr add dev net1 %s && "
			  "ip link set net1 up && " LINK_IS_UP "'",
			  child, network->peer_address)) {
		kill(child, SIGKILL);
		test_skip("ip(8) makes no veth here");
	}
	if (network->netem &&
	    !command_runs("tc qdisc add dev net0 root netem %s 2>/dev/null", network->netem)) {
		kill(child, SIGKILL);
		EXPECT(!getenv("NETEM"));
		test_skip("the kernel has no netem");
	}
	return child;
}

static const struct network *namespaces_network;

static void namespaces_run(void)
{
	pid_t space = namespaces_make(namespaces_network);

	peers_run((struct peers){ .provider = "tcp",
				  .interface = "net0",
				  .peer_interface = "net1",
				  .rounds = namespaces_network->rounds,
				  .peer_namespace = space });
	kill(space, SIGKILL);
	waitpid(space, NULL, 0);
}

TEST_EACH(namespaces, struct network, networks, "Messages go from a network namespace to another.")
{
	namespaces_network = row;
	test_in_child(namespaces_run);
}

TEST(namespaces_loss, "Messages are whole over a network with delay that loses packets.")
{
	namespaces_network = &network_with_loss;
	test_in_child(namespaces_run);
}

static void namespaces_run_killed(void)
{
	pid_t space = namespaces_make(namespaces_network);

	peers_run_killed((struct peers){ .provider = "tcp",
					 .interface = "net0",
					 .peer_interface = "net1",
					 .peer_namespace = space });
	kill(space, SIGKILL);
	waitpid(space, NULL, 0);
}

TEST(loss_killed, "A receive fails if the sender is killed behind a network that loses packets.")
{
	namespaces_network = &network_with_loss;
	test_in_child(namespaces_run_killed);
}

static void peer_is_killed(void)
{
	peers_run_killed(
		(struct peers){ .provider = "tcp", .interface = "lo", .peer_interface = "lo" });
}

TEST(peer_is_killed, "A receive fails with a remote error if the sender is killed.")
{
	test_in_child(peer_is_killed);
}

static void receiver_is_killed(void)
{
	peers_run_killed_receiver(
		(struct peers){ .provider = "tcp", .interface = "lo", .peer_interface = "lo" });
}

TEST(receiver_is_killed, "A send fails with a remote error if the receiver is killed.")
{
	test_in_child(receiver_is_killed);
}

static void kills_each(void)
{
	peers_run_kills(
		(struct peers){ .provider = "tcp", .interface = "lo", .peer_interface = "lo" });
}

TEST(kills, "After the end of a process each request of the other process's ends, later ones fail.")
{
	test_in_child(kills_each);
}

static void kills_connecting(void)
{
	peers_run_kills_connecting(
		(struct peers){ .provider = "tcp", .interface = "lo", .peer_interface = "lo" });
}

TEST(kills_connecting, "A listener goes on after a process that was killed while it connected.")
{
	test_in_child(kills_connecting);
}

struct refusal {
	const char *name;
	int accepts, spare;
};

/* With five rails a connection needs more descriptors than these. */
static const struct refusal refusals[] = {
	{ "unread", 0, -1 },
	{ "once", 1, -1 },
	{ "no_descriptor", 1000000, 0 },
	{ "descriptor", 1000000, 1 },
	{ "descriptors_2", 1000000, 2 },
	{ "descriptors_4", 1000000, 4 },
};

static const struct refusal *refusal;

static void peers_are_refused(void)
{
	peers_run_refused(
		(struct peers){ .provider = "tcp", .interface = "lo", .peer_interface = "lo" },
		refusal->accepts, refusal->spare);
}

TEST_EACH(refused, struct refusal, refusals,
	  "A sender hears of it if the listener closes without the connection.")
{
	refusal = row;
	test_in_child(peers_are_refused);
}
