/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy.h"
#include "harness.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDRESS_OFFSET 16 /* of the listener's address in the handle */
#define MAX_PIECE 40000

struct proxy {
	int listener;
	unsigned int delay_us;
	struct sockaddr_in target;
};

struct direction {
	int from, to;
	unsigned int delay_us, random;
};

static unsigned int direction_random(struct direction *d)
{
	d->random = d->random * 1103515245U + 12345;
	return d->random >> 8;
}

static void *direction_run(void *arg)
{
	struct direction *d = arg;
	char *piece = malloc(MAX_PIECE);
	ssize_t got = 1, sent;

	while (piece && got > 0) {
		got = recv(d->from, piece, 1 + direction_random(d) % MAX_PIECE, 0);
		if (direction_random(d) % 4 == 0)
			usleep(d->delay_us); /* time: noise */
		for (ssize_t at = 0; at < got; at += sent) {
			sent = send(d->to, piece + at, (size_t)(got - at), MSG_NOSIGNAL);
			if (sent <= 0)
				break;
		}
	}
	shutdown(d->to, SHUT_WR);
	free(piece);
	free(d);
	return NULL;
}

static void direction_start(int from, int to, const struct proxy *proxy)
{
	struct direction *d = malloc(sizeof(*d));
	pthread_t thread;

	if (!d)
		abort();
	*d = (struct direction){ from, to, proxy->delay_us, (unsigned int)from };
	if (pthread_create(&thread, NULL, direction_run, d))
		abort();
	pthread_detach(thread);
}

static void *proxy_run(void *arg)
{
	struct proxy *proxy = arg;
	const int on = 1;

	for (;;) {
		int in = accept(proxy->listener, NULL, NULL);
		int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (in < 0 || out < 0 ||
		    connect(out, (struct sockaddr *)&proxy->target, sizeof(proxy->target)))
			abort();
		setsockopt(in, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		direction_start(in, out, proxy);
		direction_start(out, in, proxy);
	}
	return NULL;
}

void proxy_start(void *handle, unsigned int delay_us)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct proxy *proxy = calloc(1, sizeof(*proxy));
	char *place = (char *)handle + ADDRESS_OFFSET;
	socklen_t size = sizeof(own);
	pthread_t thread;

	EXPECT(proxy);
	memcpy(&proxy->target, place, sizeof(proxy->target));
	EXPECT_EQ(proxy->target.sin_family, AF_INET);
	proxy->delay_us = delay_us;
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	EXPECT(!bind(proxy->listener, (struct sockaddr *)&own, sizeof(own)));
	EXPECT(!listen(proxy->listener, 64));
	EXPECT(!getsockname(proxy->listener, (struct sockaddr *)&own, &size));
	EXPECT(!pthread_create(&thread, NULL, proxy_run, proxy));
	pthread_detach(thread);
	memcpy(place, &own, sizeof(own));
}
