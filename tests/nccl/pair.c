/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"
#include "harness.h"

#include <sched.h>
#include <time.h>

#define LIMIT_SECONDS 60

static bool time_is_left(time_t end)
{
	struct timespec now;

	sched_yield();
	clock_gettime(CLOCK_MONOTONIC, &now); /* time: a limit on a hang */
	return now.tv_sec < end;
}

static time_t time_limit(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now); /* time: a limit on a hang */
	return now.tv_sec + LIMIT_SECONDS;
}

void pair_connect(struct pair *pair)
{
	char handle[NCCL_NET_HANDLE_SIZE];
	time_t end = time_limit();

	memcpy(handle, pair->handle, sizeof(handle));
	pair->sender = NULL;
	pair->receiver = NULL;
	while (!pair->sender || !pair->receiver) {
		if (!pair->sender)
			EXPECT_EQ(plugin_connect(pair->plugin, pair->device, handle, &pair->sender),
				  0);
		if (!pair->receiver)
			EXPECT_EQ(plugin_accept(pair->plugin, pair->listener, &pair->receiver), 0);
		EXPECT(time_is_left(end));
	}
}

void pair_open_on(struct pair *pair, const struct plugin *plugin, int device)
{
	*pair = (struct pair){ .plugin = plugin, .device = device };
	EXPECT_EQ(plugin_listen(plugin, device, pair->handle, &pair->listener), 0);
	pair_connect(pair);
}

void pair_open(struct pair *pair, const struct plugin *plugin)
{
	pair_open_on(pair, plugin, 0);
}

void pair_close(struct pair *pair)
{
	const struct nccl_net_v6 *table = plugin_table(pair->plugin);

	EXPECT_EQ(table->closeSend(pair->sender), 0);
	EXPECT_EQ(table->closeRecv(pair->receiver), 0);
	EXPECT_EQ(table->closeListen(pair->listener), 0);
}

void *pair_send(const struct pair *pair, void *data, size_t size, void *mhandle)
{
	time_t end = time_limit();
	void *request = NULL;

	while (!request) {
		EXPECT_EQ(plugin_send(pair->plugin, pair->sender, data, size, mhandle, &request),
			  0);
		EXPECT(time_is_left(end));
	}
	return request;
}

void *pair_receive(const struct pair *pair, void *data, size_t size, void *mhandle)
{
	time_t end = time_limit();
	void *request = NULL;

	while (!request) {
		EXPECT_EQ(
			plugin_receive(pair->plugin, pair->receiver, data, size, mhandle, &request),
			0);
		EXPECT(time_is_left(end));
	}
	return request;
}

size_t pair_finish(const struct pair *pair, void *send, void *receive)
{
	const struct nccl_net_v6 *table = plugin_table(pair->plugin);
	time_t end = time_limit();
	int sent = !send, received = !receive;
	int size = 0;

	while (!sent || !received) {
		if (!sent)
			EXPECT_EQ(table->test(send, &sent, NULL), 0);
		if (!received)
			EXPECT_EQ(table->test(receive, &received, &size), 0);
		EXPECT(time_is_left(end));
	}
	return (size_t)size;
}

enum nccl_result pair_wait(const struct pair *pair, void *request, int *size)
{
	time_t end = time_limit();
	enum nccl_result result = NCCL_SUCCESS;
	int done = 0;

	while (!done && !result) {
		result = plugin_table(pair->plugin)->test(request, &done, size);
		EXPECT(time_is_left(end));
	}
	return result;
}

void message_fill(void *data, size_t size, unsigned int seed)
{
	unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(seed + i + (i >> 8) * 7 + (i >> 16) * 13);
}

bool message_is(const void *data, size_t size, unsigned int seed)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		if (bytes[i] != (unsigned char)(seed + i + (i >> 8) * 7 + (i >> 16) * 13))
			return false;
	return true;
}

#define GUARD 64

void pair_exchange(const struct pair *pair, size_t size, size_t room)
{
	char *from = malloc(size + GUARD), *to = malloc(room + GUARD);
	void *from_mhandle, *to_mhandle;
	void *send, *receive;

	EXPECT(from && to);
	message_fill(from, size, (unsigned int)size);
	memset(to, 0xee, room + GUARD);
	EXPECT_EQ(plugin_register(pair->plugin, pair->sender, from, size + GUARD, NCCL_PTR_HOST,
				  &from_mhandle),
		  0);
	EXPECT_EQ(plugin_register(pair->plugin, pair->receiver, to, room + GUARD, NCCL_PTR_HOST,
				  &to_mhandle),
		  0);
	receive = pair_receive(pair, to, room, to_mhandle);
	send = pair_send(pair, from, size, from_mhandle);
	EXPECT_EQ(pair_finish(pair, send, receive), size);
	EXPECT(message_is(to, size, (unsigned int)size));
	for (size_t i = size; i < room + GUARD; i++)
		EXPECT_EQ((unsigned char)to[i], 0xee);
	EXPECT_EQ(plugin_table(pair->plugin)->deregMr(pair->sender, from_mhandle), 0);
	EXPECT_EQ(plugin_table(pair->plugin)->deregMr(pair->receiver, to_mhandle), 0);
	free(from);
	free(to);
}
