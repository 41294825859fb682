/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl-bench PLUGIN [CHANNELS]: what the plugin moves between two processes, without the core.
 *
 * Each process sends and receives at once on every channel, up to four messages of at most 1 MiB in
 * each direction, and one thread drives all of them, as the core does.
 */
#include "plugin.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHANNELS 16
#define DEPTH 4
#define MAX_MESSAGE ((size_t)1 << 20)

struct stream {
	void *comm;
	char *data;
	void *requests[DEPTH];
	uint64_t begun, ended;
};

struct channel {
	struct stream out, in;
};

static struct plugin plugin;
static struct channel channels[MAX_CHANNELS];
static int channel_count = 2;

static double time_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now); /* time: figures */
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void bench_require(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
}

static void channel_open(struct channel *channel, int peer)
{
	char mine[NCCL_NET_HANDLE_SIZE], theirs[NCCL_NET_HANDLE_SIZE];
	void *listener;

	bench_require(!plugin_listen(&plugin, 0, mine, &listener), "listen");
	bench_require(write(peer, mine, sizeof(mine)) == sizeof(mine), "write");
	bench_require(recv(peer, theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs), "recv");
	while (!channel->out.comm || !channel->in.comm) {
		if (!channel->out.comm)
			bench_require(!plugin_connect(&plugin, 0, theirs, &channel->out.comm),
				      "connect");
		if (!channel->in.comm)
			bench_require(!plugin_accept(&plugin, listener, &channel->in.comm),
				      "accept");
	}
	plugin_table(&plugin)->closeListen(listener);
	channel->out.data = calloc(DEPTH, MAX_MESSAGE);
	channel->in.data = calloc(DEPTH, MAX_MESSAGE);
	bench_require(channel->out.data && channel->in.data, "calloc");
}

static void stream_step(struct stream *stream, bool sends, size_t message, uint64_t count)
{
	void **slot = &stream->requests[stream->begun % DEPTH];
	char *data = stream->data + stream->begun % DEPTH * MAX_MESSAGE;
	int done = 0;

	if (stream->begun < count && stream->begun - stream->ended < DEPTH) {
		bench_require(!(sends ? plugin_send : plugin_receive)(&plugin, stream->comm, data,
								      message, NULL, slot),
			      "post");
		stream->begun += *slot != NULL;
	}
	if (stream->ended == stream->begun)
		return;
	bench_require(
		!plugin_table(&plugin)->test(stream->requests[stream->ended % DEPTH], &done, NULL),
		"test");
	stream->ended += (uint64_t)done;
}

static void channels_move(size_t message, uint64_t count)
{
	bool done = false;

	for (int i = 0; i < channel_count; i++) {
		channels[i].out.begun = channels[i].out.ended = 0;
		channels[i].in.begun = channels[i].in.ended = 0;
	}
	while (!done) {
		done = true;
		for (int i = 0; i < channel_count; i++) {
			stream_step(&channels[i].out, true, message, count);
			stream_step(&channels[i].in, false, message, count);
			done = done && channels[i].out.ended == count &&
			       channels[i].in.ended == count;
		}
		sched_yield();
	}
}

/* One message at a time to the peer and back, on the first channel. */
static void channels_latency(bool first, size_t message, int rounds)
{
	struct channel *c = &channels[0];
	double start = 0;

	for (int i = -rounds / 10; i < rounds; i++) {
		if (i == 0)
			start = time_seconds();
		for (int half = 0; half < 2; half++) {
			struct stream *stream = (half == 0) == first ? &c->out : &c->in;

			stream->begun = stream->ended = 0;
			while (!stream->ended)
				stream_step(stream, stream == &c->out, message, 1);
		}
	}
	if (first)
		printf("%8zu bytes  there and back  %8.1f us\n", message,
		       (time_seconds() - start) / rounds * 1e6);
}

static void channels_bandwidth(bool first, size_t total)
{
	size_t message = total / (size_t)channel_count;
	uint64_t count = 1;
	int rounds = (int)(((size_t)1 << 29) / total);
	double start, cpu;

	if (message > MAX_MESSAGE) {
		count = message / MAX_MESSAGE;
		message = MAX_MESSAGE;
	}
	rounds = rounds > 100 ? 100 : rounds;
	channels_move(message, count);
	start = time_seconds();
	cpu = cpu_seconds();
	for (int i = 0; i < rounds; i++)
		channels_move(message, count);
	start = time_seconds() - start;
	cpu = cpu_seconds() - cpu;
	if (first)
		printf("%8zu KiB  each way  %8.1f us  %6.2f GB/s  %6.2f CPU s a GB\n", total >> 10,
		       start / rounds * 1e6, (double)total * rounds / start * 1e-9,
		       cpu / ((double)total * rounds * 1e-9));
}

static void bench_run(const char *file, bool first, int peer)
{
	bench_require(plugin_load(&plugin, file, PLUGIN_NEWEST), "load");
	bench_require(!plugin_init(&plugin), "init");
	for (int i = 0; i < channel_count; i++)
		channel_open(&channels[i], peer);
	channels_latency(first, 4096, 1000);
	for (size_t total = 256 << 10; total <= 256 << 20; total *= 4)
		channels_bandwidth(first, total);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int pair[2], status = 0;
	pid_t child;

	if (argc < 2) {
		fprintf(stderr, "usage: nccl-bench PLUGIN [CHANNELS]\n");
		return 2;
	}
	if (argc > 2)
		channel_count = (int)strtol(argv[2], NULL, 10);
	bench_require(channel_count >= 1 && channel_count <= MAX_CHANNELS, "CHANNELS");
	bench_require(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	child = fork();
	bench_require(child >= 0, "fork");
	bench_run(argv[1], child != 0, pair[child != 0]);
	if (!child)
		return 0;
	bench_require(waitpid(child, &status, 0) == child && !status, "the other process");
	return 0;
}
