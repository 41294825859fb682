/* SPDX-License-Identifier: Apache-2.0 */
/* A sender and a receiver of one connection, both in this process. */
#ifndef TESTS_NCCL_PAIR_H
#define TESTS_NCCL_PAIR_H

#include "plugin.h"

struct pair {
	const struct plugin *plugin;
	int device;
	void *listener, *sender, *receiver;
	char handle[NCCL_NET_HANDLE_SIZE]; /* the listener's; every connector copies the handle */
};

/* Calls connect and accept by turns; neither may wait.  Fails the test after some seconds. */
void pair_open(struct pair *pair, const struct plugin *plugin);
void pair_open_on(struct pair *pair, const struct plugin *plugin, int device);
void pair_connect(struct pair *pair); /* over the listener of before */
void pair_close(struct pair *pair);

/* Posts until there is a request. */
void *pair_send(const struct pair *pair, void *data, size_t size, void *mhandle);
void *pair_receive(const struct pair *pair, void *data, size_t size, void *mhandle);

/* Tests both requests by turns until both are done; the size that arrived.  NULL is done. */
size_t pair_finish(const struct pair *pair, void *send, void *receive);

/* Tests until the request is done or fails. */
enum nccl_result pair_wait(const struct pair *pair, void *request, int *size);

/* One message and its receive of @room bytes; fails the test if a byte is wrong. */
void pair_exchange(const struct pair *pair, size_t size, size_t room);

/* Fills @size bytes that depend on @seed; message_is() compares. */
void message_fill(void *data, size_t size, unsigned int seed);
bool message_is(const void *data, size_t size, unsigned int seed);

#endif /* TESTS_NCCL_PAIR_H */
