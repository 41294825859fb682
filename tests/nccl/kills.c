/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process, as the process at the other end of its connections sees it. */
#include "harness.h"
#include "peers.h"
#include "process.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILLS 30 /* rounds, unless CLIMPORT_KILLS says another number */
#define MAX_CONNECTIONS 8
#define DEPTH 4
#define LARGEST ((size_t)1 << 20)
#define LONGEST_US 20000 /* until the kill, with messages under way */
#define CONNECT_US 3000	 /* likewise, while the connections are made */
#define START_US 10000	 /* in which a process comes to its first connection */

static const size_t sizes[] = { 0, 1, 100, 65536, 65537, 300000, LARGEST };

/* One round. */
struct kill {
	struct peers peers; /* first: what the victim gets */
	int connections;
	bool survivor_sends;
	bool closes;  /* not killed: closes its connections, after @messages on each */
	bool is_late; /* the other process waits for the end before its first request */
	bool has_child; /* forked with the connections; lives until the other process has seen the end */
	unsigned int messages;
	unsigned int delay_us; /* until the kill */
	pid_t victim;
	uint64_t begun_us;
	bool is_dead;
};

static unsigned int kill_random(unsigned int *seed)
{
	*seed = *seed * 1103515245U + 12345;
	return *seed >> 8;
}

static void kill_choose(struct kill *round, struct peers peers, unsigned int seed)
{
	static const int counts[] = { 1, 2, 3, MAX_CONNECTIONS };
	unsigned int next = seed;

	*round = (struct kill){ .peers = peers };
	round->connections = counts[kill_random(&next) % 4];
	round->survivor_sends = kill_random(&next) % 2;
	round->closes = kill_random(&next) % 2;
	round->is_late = kill_random(&next) % 4 == 0;
	round->delay_us = kill_random(&next) % (kill_random(&next) % 2 ? LONGEST_US : CONNECT_US);
	/* Over verbs a message waits for its receive. */
	round->messages = round->is_late ? 0 : kill_random(&next) % 40;
	round->has_child = round->closes && !round->is_late && !strcmp(peers.provider, "tcp") &&
			   kill_random(&next) % 2;
}

static uint64_t kill_time_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now); /* time: when to kill, which no check reads */
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Called again and again: kills when it is time. */
static void kill_when_due(struct kill *round)
{
	if (round->closes || round->is_dead || kill_time_us() - round->begun_us < round->delay_us)
		return;
	kill(round->victim, SIGKILL);
	round->is_dead = true;
}

/* An end of a connection, and its messages. */
struct stream {
	const struct plugin *plugin;
	bool sends;
	void *comm, *mhandle;
	char *data;
	unsigned int begun, ended, limit;
	void *requests[DEPTH];
	enum nccl_result result;
};

static void kill_stream_open(struct stream *stream)
{
	stream->data = calloc(DEPTH, LARGEST);
	EXPECT(stream->data);
	EXPECT_EQ(plugin_register(stream->plugin, stream->comm, stream->data, DEPTH * LARGEST,
				  NCCL_PTR_HOST, &stream->mhandle),
		  0);
}

static void kill_stream_close(struct stream *stream)
{
	const struct nccl_net_v6 *table = plugin_table(stream->plugin);

	EXPECT_EQ(table->deregMr(stream->comm, stream->mhandle), 0);
	EXPECT_EQ(stream->sends ? table->closeSend(stream->comm) : table->closeRecv(stream->comm),
		  0);
	free(stream->data);
}

static void kill_stream_post(struct stream *stream, void **request)
{
	size_t i = stream->begun % DEPTH,
	       size = sizes[stream->begun % (sizeof(sizes) / sizeof(*sizes))];
	char *data = stream->data + i * LARGEST;

	if (stream->sends)
		stream->result = plugin_send(stream->plugin, stream->comm, data, size,
					     stream->mhandle, request);
	else
		stream->result = plugin_receive(stream->plugin, stream->comm, data, LARGEST,
						stream->mhandle, request);
	if (*request)
		stream->begun++;
}

static void kill_stream_test(struct stream *stream, void **request)
{
	const struct nccl_net_v6 *table = plugin_table(stream->plugin);
	int done = 0;
	enum nccl_result result = table->test(*request, &done, NULL);

	if (result)
		stream->result = result;
	else if (done)
		stream->ended++;
	if (result || done)
		*request = NULL;
}

/*
 * Whether more is to come: a request has not ended, or may be posted.  The oldest request first, as the
 * core does: an error of a later one ends the connection, and with it the messages under way.
 */
static bool kill_stream_step(struct stream *stream)
{
	void **next = &stream->requests[stream->begun % DEPTH];

	if (!stream->result && !*next && stream->begun < stream->limit)
		kill_stream_post(stream, next);
	for (unsigned int i = stream->begun < DEPTH ? 0 : stream->begun - DEPTH; i < stream->begun;
	     i++) {
		void **request = &stream->requests[i % DEPTH];

		if (*request)
			kill_stream_test(stream, request);
		if (*request)
			return true;
	}
	return !stream->result && stream->begun < stream->limit;
}

/* At the process that connects, and sends. */
static int streams_connect(struct kill *round, struct plugin *plugin, struct stream *streams)
{
	char handle[NCCL_NET_HANDLE_SIZE];
	enum nccl_result result = NCCL_SUCCESS;

	EXPECT_EQ(recv(round->peers.peer_channel, handle, sizeof(handle), MSG_WAITALL),
		  sizeof(handle));
	round->begun_us = kill_time_us();
	for (int i = 0; i < round->connections; i++) {
		char own[NCCL_NET_HANDLE_SIZE];

		memcpy(own, handle, sizeof(own));
		streams[i] = (struct stream){ .plugin = plugin, .sends = true };
		while (!streams[i].comm && !result) {
			result = plugin_connect(plugin, round->peers.peer_device, own,
						&streams[i].comm);
			if (round->victim)
				kill_when_due(round);
		}
		if (result) {
			EXPECT(round->is_dead || round->closes);
			return i;
		}
	}
	return round->connections;
}

static int streams_accept(struct kill *round, struct plugin *plugin, struct stream *streams)
{
	char handle[NCCL_NET_HANDLE_SIZE];
	void *listener;

	EXPECT_EQ(plugin_listen(plugin, round->peers.device, handle, &listener), 0);
	EXPECT_EQ(write(round->peers.channel, handle, sizeof(handle)), sizeof(handle));
	for (int i = 0; i < round->connections; i++) {
		streams[i] = (struct stream){ .plugin = plugin };
		while (!streams[i].comm)
			EXPECT_EQ(plugin_accept(plugin, listener, &streams[i].comm), 0);
	}
	EXPECT_EQ(plugin_table(plugin)->closeListen(listener), 0);
	round->begun_us = kill_time_us();
	return round->connections;
}

/* The number of connections; less than round->connections if the other process was killed before. */
static int streams_open(struct kill *round, bool sends, struct plugin *plugin,
			struct stream *streams)
{
	int count;

	peers_begin(plugin, round->peers.provider,
		    sends ? round->peers.peer_interface : round->peers.interface);
	count = sends ? streams_connect(round, plugin, streams)
		      : streams_accept(round, plugin, streams);
	for (int i = 0; i < count; i++)
		kill_stream_open(&streams[i]);
	return count;
}

static bool streams_step(struct stream *streams, int count)
{
	bool waits = false;

	for (int i = 0; i < count; i++)
		if (kill_stream_step(&streams[i]))
			waits = true;
	sched_yield();
	return waits;
}

/* The end of the channel, at the process that sends or at the other. */
static int kill_channel(const struct kill *round, bool sends)
{
	return sends ? round->peers.peer_channel : round->peers.channel;
}

/* As a program's worker, which inherits the sockets of the connections. */
static void kill_start_child(void)
{
	pid_t parent = getpid();

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}

static void kill_victim(const void *arg)
{
	struct kill round = *(const struct kill *)arg; /* whose first member the argument is */
	struct stream streams[MAX_CONNECTIONS];
	struct plugin plugin;
	int count;

	alarm(PEERS_SECONDS); /* time: a limit on a hang */
	if (round.survivor_sends)
		round.peers = peers_swapped(&round.peers);
	count = streams_open(&round, !round.survivor_sends, &plugin, streams);
	for (int i = 0; i < count; i++)
		streams[i].limit = round.closes || round.is_late ? round.messages : UINT_MAX;
	while (streams_step(streams, count))
		;
	while (!round.closes)
		pause();
	if (round.has_child)
		kill_start_child();
	for (int i = 0; i < count; i++)
		kill_stream_close(&streams[i]);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
	if (round.has_child)
		EXPECT_EQ(read(kill_channel(&round, !round.survivor_sends), &(char){ 0 }, 1), 1);
}

static void kill_wait(struct kill *round)
{
	int status;

	while (!round->closes && !round->is_dead)
		kill_when_due(round);
	EXPECT_EQ(waitpid(round->victim, &status, 0), round->victim);
	if (round->closes)
		EXPECT_EQ(status, 0);
}

/* An end of a connection whose peer is gone. */
static void kill_judge(const struct kill *round, struct stream *stream)
{
	void *request = NULL;

	EXPECT(stream->result);
	stream->result = NCCL_SUCCESS;
	kill_stream_post(stream, &request);
	EXPECT(stream->result);
	EXPECT(!request);
	if (round->closes && !stream->sends)
		EXPECT_EQ(stream->ended, round->messages);
}

static void kill_run(const void *arg)
{
	struct kill round = *(const struct kill *)arg;
	struct stream streams[MAX_CONNECTIONS];
	struct plugin plugin;
	int count;

	round.victim = peers_start(&round.peers, kill_victim);
	if (round.survivor_sends)
		round.peers = peers_swapped(&round.peers);
	count = streams_open(&round, round.survivor_sends, &plugin, streams);
	if (round.is_late)
		kill_wait(&round);
	for (int i = 0; i < count; i++)
		streams[i].limit = UINT_MAX;
	while (streams_step(streams, count))
		kill_when_due(&round);
	if (round.has_child)
		EXPECT_EQ(write(kill_channel(&round, round.survivor_sends), "", 1), 1);
	if (!round.is_late)
		kill_wait(&round);
	for (int i = 0; i < count; i++) {
		kill_judge(&round, &streams[i]);
		kill_stream_close(&streams[i]);
	}
	EXPECT_EQ(plugin_finalize(&plugin), 0);
}

/* Each round in a child: verbs outlives no fork(). */
void peers_run_kills(struct peers peers)
{
	const char *count = getenv("CLIMPORT_KILLS");
	int rounds = count ? atoi(count) : KILLS;
	struct kill round;
	int status;

	for (int i = 0; i < rounds; i++) {
		kill_choose(&round, peers, (unsigned int)i);
		EXPECT(waitpid(test_start_child(kill_run, &round), &status, 0) > 0);
		EXPECT_EQ(status ? i : -1, -1);
	}
}

static void kill_connect(const void *arg)
{
	const struct peers *peers = arg;
	struct stream stream;
	struct plugin plugin;
	struct kill round = { .peers = *peers, .connections = 1 };

	alarm(PEERS_SECONDS); /* time: a limit on a hang */
	if (streams_open(&round, true, &plugin, &stream)) {
		stream.limit = UINT_MAX;
		while (kill_stream_step(&stream))
			;
		kill_stream_close(&stream);
	}
	EXPECT_EQ(plugin_finalize(&plugin), 0);
}

/* Starts a process that connects to the listener, and sends. */
static pid_t kill_start_sender(struct peers *peers, const char *handle)
{
	pid_t sender = peers_start(peers, kill_connect);

	EXPECT_EQ(write(peers->channel, handle, NCCL_NET_HANDLE_SIZE), NCCL_NET_HANDLE_SIZE);
	return sender;
}

/* What comes is closed. */
static void kill_accept_bad(const struct plugin *plugin, void *listener)
{
	void *receiver = NULL;

	if (!plugin_accept(plugin, listener, &receiver) && receiver)
		EXPECT_EQ(plugin_table(plugin)->closeRecv(receiver), 0);
}

static void kill_accept_for(const struct plugin *plugin, void *listener, unsigned int us)
{
	uint64_t begin = kill_time_us();

	while (kill_time_us() - begin < us)
		kill_accept_bad(plugin, listener);
}

/*
 * Accepts, and receives a message of each connection, until the sender has ended: it sends until its own
 * connection is closed, and fails without one.  The victim, too, may have sent.
 */
static void kill_accept_good(const struct plugin *plugin, void *listener, pid_t sender)
{
	unsigned int messages = 0;
	int status;

	while (waitpid(sender, &status, WNOHANG) != sender) {
		struct stream stream = { .plugin = plugin, .limit = 1 };

		if (plugin_accept(plugin, listener, &stream.comm) || !stream.comm)
			continue;
		kill_stream_open(&stream);
		while (kill_stream_step(&stream))
			;
		messages += stream.ended;
		kill_stream_close(&stream);
	}
	EXPECT_EQ(status, 0);
	EXPECT(messages);
}

static void kill_close_channels(const struct peers *peers)
{
	close(peers->channel);
	close(peers->peer_channel);
}

void peers_run_kills_connecting(struct peers peers)
{
	struct peers dies = peers, lives = peers;
	char handle[NCCL_NET_HANDLE_SIZE];
	unsigned int seed = 1;
	struct plugin plugin;
	int descriptors;
	void *listener;

	peers_begin(&plugin, peers.provider, peers.interface);
	EXPECT_EQ(plugin_listen(&plugin, peers.device, handle, &listener), 0);
	descriptors = process_count_descriptors();
	for (int i = 0; i < KILLS; i++) {
		pid_t victim = kill_start_sender(&dies, handle), sender;

		kill_accept_for(&plugin, listener, START_US + kill_random(&seed) % CONNECT_US);
		kill(victim, SIGKILL);
		EXPECT_EQ(waitpid(victim, NULL, 0), victim);
		sender = kill_start_sender(&lives, handle);
		kill_accept_good(&plugin, listener, sender);
		kill_close_channels(&dies);
		kill_close_channels(&lives);
	}
	/* The end of the last victim may be seen after the good connection. */
	while (process_count_descriptors() > descriptors)
		kill_accept_bad(&plugin, listener);
	EXPECT_EQ(plugin_table(&plugin)->closeListen(listener), 0);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
}
