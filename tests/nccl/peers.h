/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin between two processes: the process of the test receives, and a child sends. */
#ifndef TESTS_NCCL_PEERS_H
#define TESTS_NCCL_PEERS_H

#include "pair.h"

#include <sys/types.h>

/* Memory of messages that a CPU may not touch.  Each function fails the test on an error. */
struct peers_memory {
	int kind;	     /* NCCL_PTR_* */
	void (*begin)(void); /* before the plugin starts; may be NULL */
	void *(*alloc)(size_t size);
	void (*free)(void *memory);
	void (*write)(void *to, const void *from, size_t size);
	void (*read)(void *to, const void *from, size_t size);
};

struct peers {
	const char *provider;
	const char *interface, *peer_interface; /* of tcp; the peer is the sender */
	int device, peer_device;
	const struct peers_memory *memory; /* NULL: host memory */
	int rounds;
	int proxy_delay_us; /* 0: no proxy */
	pid_t peer_namespace; /* the process whose network namespace is the sender's; 0: one for both */
	int channel, peer_channel; /* of peers_run() */
};

/* Loads and starts the plugin.  @interface: NULL: any. */
void peers_begin(struct plugin *plugin, const char *provider, const char *interface);

#define PEERS_SECONDS 100 /* after which a process of a test ends */

/* Starts the child, with a channel between both processes. */
pid_t peers_start(struct peers *peers, void (*peer)(const void *));
/* The child's end of the channel, at the process that listens or connects. */
struct peers peers_swapped(const struct peers *peers);

/* Messages of every size, several at once, each with its own bytes.  Ends the process in 100 s. */
void peers_run(struct peers peers);

/* A receive whose sender is killed fails with a remote error. */
void peers_run_killed(struct peers peers);

/* Of sends one fails with a remote error after the receiver was killed; here the child receives. */
void peers_run_killed_receiver(struct peers peers);

/*
 * A listener closes after @accepts calls of accept at most, although the sender's request is there:
 * the sender hears of the end, and no descriptor is left.  @spare: descriptors that the listener may
 * still open, and accept has to fail; -1: no limit.
 */
void peers_run_refused(struct peers peers, int accepts, int spare);

/*
 * kills.c: rounds in which a process is killed or closes at a random moment, with connections that
 * wait or have messages under way.  At the other process every request ends, each connection fails,
 * and what a process has sent before it closes arrives.
 */
void peers_run_kills(struct peers peers);

/* A listener goes on after a process that was killed while it connected, and keeps no descriptor. */
void peers_run_kills_connecting(struct peers peers);

#endif /* TESTS_NCCL_PEERS_H */
