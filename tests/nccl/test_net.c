/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin over libfabric's tcp, both ends in one process. */
#include "harness.h"
#include "no_tcp_info.h"
#include "pair.h"
#include "process.h"
#include "versions.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDLE_ADDRESS 16 /* bytes before the address in a handle of the transport libfabric */

static const struct version newest = { "v12", 12 };

static const size_t sizes[] = {
	0,
	1,
	512,
	4096,
	65535,
	65536,
	65537,
	131071,
	1 << 17,
	300001,
	(1 << 20) - 1,
	1 << 20,
	(1 << 20) + 1,
	(4 << 20) - 1,
	4 << 20,
	(4 << 20) + 1,
};

static void plugin_begin_file(struct plugin *plugin, const char *file,
			      const struct version *version)
{
	setenv("CLIMPORT_NET_PROVIDER", "tcp", 1);
	setenv("CLIMPORT_NET_IFNAME", "lo", 1);
	unsetenv("CLIMPORT_NET_THREADS");
	unsetenv("CLIMPORT_NET_RAILS");
	unsetenv("CLIMPORT_NET_LIBFABRIC");
	EXPECT(plugin_load(plugin, file, version->number));
	EXPECT_EQ(plugin_init(plugin), 0);
}

static void plugin_begin(struct plugin *plugin, const struct version *version)
{
	plugin_begin_file(plugin, PLUGIN_NCCL, version);
}

static void plugin_end(struct plugin *plugin)
{
	EXPECT_EQ(plugin_finalize(plugin), 0);
	plugin_unload(plugin);
}

TEST_EACH(names, struct version, versions,
	  "Both files, for NCCL and for RCCL, have the version, by the name climport.")
{
	static const char *const files[] = { PLUGIN_NCCL, PLUGIN_RCCL };
	struct plugin plugin;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		EXPECT(plugin_load(&plugin, files[i], row->number));
		EXPECT_EQ(strcmp(plugin_name(&plugin), "climport"), 0);
		plugin_unload(&plugin);
	}
}

/* The newest version that a release of RCCL asks for. */
static const struct version rccl_releases[] = {
	{ "2_18", 6 },
	{ "2_21", 8 },
	{ "2_27", 10 },
};

TEST_EACH(rccl, struct version, rccl_releases,
	  "The file of RCCL's name moves messages by the version that the release asks for.")
{
	struct plugin plugin;
	struct pair pair;

	plugin_begin_file(&plugin, PLUGIN_RCCL, row);
	pair_open(&pair, &plugin);
	pair_exchange(&pair, 100, 100);
	pair_exchange(&pair, 1 << 20, 1 << 20);
	pair_close(&pair);
	plugin_end(&plugin);
}

TEST_EACH(properties, struct version, versions,
	  "A device over tcp takes host memory alone, one receive at a time.")
{
	struct nccl_net_properties_v12 properties;
	struct rlimit descriptors;
	struct plugin plugin;

	plugin_begin(&plugin, row);
	EXPECT_EQ(plugin_devices(&plugin), 1);
	EXPECT_EQ(plugin_properties(&plugin, 0, &properties), 0);
	EXPECT_EQ(properties.ptrSupport, NCCL_PTR_HOST);
	EXPECT_EQ(strcmp(properties.name, "lo"), 0);
	EXPECT_EQ(properties.maxRecvs, 1);
	EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	EXPECT(properties.speed > 0 && properties.maxComms > 0);
	EXPECT((rlim_t)properties.maxComms <= descriptors.rlim_cur / 6);
	EXPECT_EQ(properties.regIsGlobal, row->number >= 8);
	EXPECT_EQ(properties.vProps.ndevs, row->number >= 9);
	EXPECT_EQ(properties.maxP2pBytes, row->number >= 9 ? NCCL_NET_MAX_BYTES : 0);
	EXPECT_EQ(properties.railId, row->number >= 12 ? NCCL_NET_ID_NONE : 0);
	EXPECT(plugin_properties(&plugin, 1, &properties));
	plugin_end(&plugin);
}

TEST_EACH(sizes, struct version, versions, "Messages of every size arrive whole, and nothing more.")
{
	struct plugin plugin;
	struct pair pair;

	plugin_begin(&plugin, row);
	pair_open(&pair, &plugin);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		pair_exchange(&pair, sizes[i], sizes[i]);
	pair_close(&pair);
	plugin_end(&plugin);
}

TEST_EACH(room, struct version, versions,
	  "A receive with more room than the message has the message's size.")
{
	struct plugin plugin;
	struct pair pair;

	plugin_begin(&plugin, row);
	pair_open(&pair, &plugin);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		pair_exchange(&pair, sizes[i], sizes[i] + (1 << 20));
	pair_close(&pair);
	plugin_end(&plugin);
}

/* Fails a receive of half the size. */
static void small_receive(size_t size)
{
	char *data = calloc(2, size);
	struct plugin plugin;
	struct pair pair;
	void *receive;

	plugin_begin(&plugin, &newest);
	pair_open(&pair, &plugin);
	receive = pair_receive(&pair, data, size / 2, NULL);
	pair_send(&pair, data + size, size, NULL);
	EXPECT(pair_wait(&pair, receive, NULL));
	pair_close(&pair);
	plugin_end(&plugin);
	free(data);
}

TEST(small_receive, "A receive with less room than a small message fails.")
{
	small_receive(4096);
}

TEST(small_receive_large, "A receive with less room than a large message fails.")
{
	small_receive(1 << 20);
}

TEST(broken, "After a receive that fails no later request of the connection succeeds.")
{
	const size_t size = 1 << 20;
	char *from = calloc(2, size), *to = calloc(2, size);
	struct plugin plugin;
	struct pair pair;
	void *small, *posted, *request = NULL;

	EXPECT(from && to);
	plugin_begin(&plugin, &newest);
	pair_open(&pair, &plugin);
	small = pair_receive(&pair, to, 4096, NULL);
	posted = pair_receive(&pair, to + size, size, NULL);
	pair_send(&pair, from, size, NULL);
	pair_send(&pair, from + size, size, NULL);
	EXPECT(pair_wait(&pair, small, NULL));
	EXPECT(pair_wait(&pair, posted, NULL));
	EXPECT(plugin_receive(&plugin, pair.receiver, to, size, NULL, &request));
	EXPECT(!request);
	pair_close(&pair);
	plugin_end(&plugin);
	free(from);
	free(to);
}

TEST(parts, "Messages arrive whole if their parts do not divide them.")
{
	struct plugin plugin;
	struct pair pair;

	plugin_begin(&plugin, &newest);
	setenv("CLIMPORT_NET_RAILS", "8", 1);
	pair_open(&pair, &plugin);
	for (size_t extra = 0; extra < 10; extra++) {
		pair_exchange(&pair, (8 << 16) + extra, (8 << 16) + extra);
		pair_exchange(&pair, 100, 100);
	}
	pair_close(&pair);
	plugin_end(&plugin);
}

struct many {
	char from[NCCL_NET_MAX_REQUESTS][200000], to[NCCL_NET_MAX_REQUESTS][200000];
	void *sends[NCCL_NET_MAX_REQUESTS], *receives[NCCL_NET_MAX_REQUESTS];
};

/* @size(i) bytes in the i-th of 32 messages, all posted before the first test. */
static void many_exchange(const struct pair *pair, size_t (*size)(int i), bool send_first)
{
	struct many *many = calloc(1, sizeof(*many));

	EXPECT(many);
	for (int i = 0; i < NCCL_NET_MAX_REQUESTS; i++)
		message_fill(many->from[i], size(i), (unsigned int)i);
	for (int i = 0; send_first && i < NCCL_NET_MAX_REQUESTS; i++)
		many->sends[i] = pair_send(pair, many->from[i], size(i), NULL);
	for (int i = 0; i < NCCL_NET_MAX_REQUESTS; i++)
		many->receives[i] = pair_receive(pair, many->to[i], sizeof(many->to[i]), NULL);
	for (int i = 0; !send_first && i < NCCL_NET_MAX_REQUESTS; i++)
		many->sends[i] = pair_send(pair, many->from[i], size(i), NULL);
	/* The last first: an end out of order. */
	for (int i = NCCL_NET_MAX_REQUESTS - 1; i >= 0; i--) {
		EXPECT_EQ(pair_finish(pair, many->sends[i], many->receives[i]), size(i));
		EXPECT(message_is(many->to[i], size(i), (unsigned int)i));
	}
	free(many);
}

static size_t size_small(int i)
{
	return (size_t)i * 17;
}

static size_t size_large(int i)
{
	return 200000 - (size_t)i * 1000;
}

static size_t size_mixed(int i)
{
	return i % 3 ? size_small(i) : size_large(i);
}

struct mix {
	const char *name;
	size_t (*size)(int i);
	bool send_first;
};

static const struct mix mixes[] = {
	{ "small", size_small, false },		  { "large", size_large, false },
	{ "mixed", size_mixed, false },		  { "small_unexpected", size_small, true },
	{ "large_unexpected", size_large, true }, { "mixed_unexpected", size_mixed, true },
};

TEST_EACH(many, struct mix, mixes, "32 messages that wait together arrive in their order.")
{
	struct plugin plugin;
	struct pair pair;

	plugin_begin(&plugin, &newest);
	pair_open(&pair, &plugin);
	for (int i = 0; i < 3; i++)
		many_exchange(&pair, row->size, row->send_first);
	pair_close(&pair);
	plugin_end(&plugin);
}

TEST(without_threads, "Large messages arrive if the plugin may start no thread.")
{
	int threads = process_count_threads();
	struct plugin plugin;
	struct pair pair;

	plugin_begin(&plugin, &newest);
	setenv("CLIMPORT_NET_THREADS", "0", 1);
	pair_open(&pair, &plugin);
	many_exchange(&pair, size_mixed, false);
	many_exchange(&pair, size_large, true);
	EXPECT_EQ(process_count_threads(), threads);
	pair_close(&pair);
	plugin_end(&plugin);
}

TEST(listen_again, "A listener accepts another connection after the first.")
{
	struct plugin plugin;
	struct pair first, second;

	plugin_begin(&plugin, &newest);
	pair_open(&first, &plugin);
	second = first;
	pair_connect(&second);
	pair_exchange(&first, 100000, 100000);
	pair_exchange(&second, 100000, 100000);
	EXPECT_EQ(plugin_table(&plugin)->closeSend(second.sender), 0);
	EXPECT_EQ(plugin_table(&plugin)->closeRecv(second.receiver), 0);
	pair_exchange(&first, 100000, 100000);
	pair_close(&first);
	plugin_end(&plugin);
}

#define STRANGERS 12

/* A socket that is connected to the listener, and sends nothing. */
static int stranger_connect(const char *handle)
{
	struct sockaddr_in address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(&address, handle + HANDLE_ADDRESS, sizeof(address));
	EXPECT(fd >= 0 && address.sin_family == AF_INET);
	EXPECT_EQ(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

TEST(strangers, "A listener leaves no descriptor of peers that have connected and gone.")
{
	char handle[NCCL_NET_HANDLE_SIZE];
	int descriptors;
	void *kept, *listener;
	struct plugin plugin;

	plugin_begin(&plugin, &newest);
	EXPECT_EQ(plugin_listen(&plugin, 0, handle, &kept), 0); /* keeps the device's lanes */
	descriptors = process_count_descriptors();
	EXPECT_EQ(plugin_listen(&plugin, 0, handle, &listener), 0);
	for (int i = 0; i < STRANGERS; i++)
		close(stranger_connect(handle));
	EXPECT_EQ(plugin_table(&plugin)->closeListen(listener), 0);
	EXPECT_EQ(process_count_descriptors(), descriptors);
	EXPECT_EQ(plugin_table(&plugin)->closeListen(kept), 0);
	plugin_end(&plugin);
}

#define MANY_STRANGERS 1000
#define MOST_HALF_OPEN 400 /* what a listener keeps, and what comes between two looks */
#define DESCRIPTORS (3 * MANY_STRANGERS)

/* What strangers say; the request is the beginning of one of libfabric 1.17's. */
static const struct {
	const char *bytes;
	size_t size;
} stranger_says[] = {
	{ "", 0 },
	{ "GET / HTTP/1.1\r\n\r\n", 18 },
	{ "\3", 1 },
	{ "\3\0\0\0\0\50\0\1\0\0\0\0\0\0\0\0mil", 19 },
};

#define SAYINGS (sizeof(stranger_says) / sizeof(stranger_says[0]))

/* Most say nothing. */
static int stranger_speak(const char *handle, size_t i)
{
	size_t says = i % 8 < SAYINGS ? i % 8 : 0;
	int stranger = stranger_connect(handle);

	EXPECT_EQ(send(stranger, stranger_says[says].bytes, stranger_says[says].size, MSG_NOSIGNAL),
		  stranger_says[says].size);
	return stranger;
}

static void strangers_many(void)
{
	static int strangers[MANY_STRANGERS];
	char handle[NCCL_NET_HANDLE_SIZE];
	struct plugin plugin;
	struct pair pair = { .plugin = &plugin };
	struct rlimit before;
	int descriptors;
	void *kept;

	process_limit_descriptors(DESCRIPTORS, &before);
	plugin_begin(&plugin, &newest);
	EXPECT_EQ(plugin_listen(&plugin, 0, handle, &kept), 0); /* keeps the device's lanes */
	descriptors = process_count_descriptors();
	EXPECT_EQ(plugin_listen(&plugin, 0, pair.handle, &pair.listener), 0);
	memcpy(handle, pair.handle, sizeof(handle));
	for (size_t i = 0; i < MANY_STRANGERS; i++) {
		strangers[i] = stranger_speak(pair.handle, i);
		if (!pair.sender && i > MANY_STRANGERS * 9 / 10)
			EXPECT_EQ(plugin_connect(&plugin, 0, handle, &pair.sender), 0);
		if (!pair.receiver)
			EXPECT_EQ(plugin_accept(&plugin, pair.listener, &pair.receiver), 0);
	}
	while (!pair.sender)
		EXPECT_EQ(plugin_connect(&plugin, 0, handle, &pair.sender), 0);
	while (!pair.receiver)
		EXPECT_EQ(plugin_accept(&plugin, pair.listener, &pair.receiver), 0);
	pair_exchange(&pair, 100000, 100000);
	/* The strangers' own ends are in this process, too. */
	EXPECT(process_count_descriptors() < descriptors + MANY_STRANGERS + MOST_HALF_OPEN);
	pair_close(&pair);
	for (size_t i = 0; i < MANY_STRANGERS; i++)
		close(strangers[i]);
	EXPECT_EQ(process_count_descriptors(), descriptors);
	EXPECT_EQ(plugin_table(&plugin)->closeListen(kept), 0);
	plugin_end(&plugin);
}

TEST(strangers_many, "A thousand strangers hold up no peer, and leave no descriptor.")
{
	test_in_child(strangers_many);
}

/* The strangers stay while the listener closes. */
static void strangers_silent(void)
{
	char handle[NCCL_NET_HANDLE_SIZE];
	int strangers[STRANGERS], descriptors;
	void *kept, *listener, *receiver = NULL;
	struct plugin plugin;

	plugin_begin(&plugin, &newest);
	EXPECT_EQ(plugin_listen(&plugin, 0, handle, &kept), 0); /* keeps the device's lanes */
	EXPECT_EQ(plugin_listen(&plugin, 0, handle, &listener), 0);
	for (int i = 0; i < STRANGERS; i++)
		strangers[i] = stranger_connect(handle);
	descriptors = process_count_descriptors();
	while (process_count_descriptors() < descriptors + STRANGERS)
		EXPECT_EQ(plugin_accept(&plugin, listener, &receiver), 0);
	EXPECT_EQ(plugin_table(&plugin)->closeListen(listener), 0);
	EXPECT(process_count_descriptors() < descriptors);
	for (int i = 0; i < STRANGERS; i++)
		close(strangers[i]);
	EXPECT_EQ(plugin_table(&plugin)->closeListen(kept), 0);
	plugin_end(&plugin);
}

static void closed_listener(void)
{
	struct plugin plugin;
	struct pair pair;

	no_tcp_info = true;
	plugin_begin(&plugin, &newest);
	pair_open(&pair, &plugin);
	EXPECT_EQ(plugin_table(&plugin)->closeListen(pair.listener), 0);
	EXPECT_EQ(plugin_listen(&plugin, pair.device, pair.handle, &pair.listener), 0);
	pair_exchange(&pair, 100, 100);
	pair_close(&pair);
	plugin_end(&plugin);
}

TEST(closed_listener,
     "Connections outlive their listener also where the system does not tell what has arrived.")
{
	test_in_child(closed_listener);
}

TEST(strangers_silent,
     "A stranger that never speaks leaves no descriptor when the listener closes.")
{
	test_in_child(strangers_silent);
}

TEST(sender_closes, "Messages that a sender has sent arrive after the sender has closed.")
{
	char from[2048], to[2048] = { 0 };
	struct plugin plugin;
	struct pair pair;
	void *receive;

	plugin_begin(&plugin, &newest);
	pair_open(&pair, &plugin);
	message_fill(from, sizeof(from), 5);
	pair_finish(&pair, pair_send(&pair, from, sizeof(from), NULL), NULL);
	EXPECT_EQ(plugin_table(&plugin)->closeSend(pair.sender), 0);
	pair.sender = NULL;
	receive = pair_receive(&pair, to, sizeof(to), NULL);
	EXPECT_EQ(pair_finish(&pair, NULL, receive), sizeof(to));
	EXPECT(message_is(to, sizeof(to), 5));
	pair_close(&pair);
	plugin_end(&plugin);
}

TEST(peer_closes, "A receive fails if the sender closes without a message.")
{
	char to[16];
	struct plugin plugin;
	struct pair pair;
	void *receive;

	plugin_begin(&plugin, &newest);
	pair_open(&pair, &plugin);
	receive = pair_receive(&pair, to, sizeof(to), NULL);
	EXPECT_EQ(plugin_table(&plugin)->closeSend(pair.sender), 0);
	pair.sender = NULL;
	EXPECT(pair_wait(&pair, receive, NULL));
	pair_close(&pair);
	plugin_end(&plugin);
}

TEST(close_early, "A connection that is closed with requests leaves no descriptor and no thread.")
{
	char *data = calloc(1, 8 << 20);
	int descriptors, threads;
	struct plugin plugin;
	struct pair pair;

	plugin_begin(&plugin, &newest);
	/* The first connection opens what the process keeps. */
	pair_open(&pair, &plugin);
	pair_close(&pair);
	descriptors = process_count_descriptors();
	threads = process_count_threads();
	for (int i = 0; i < 5; i++) {
		pair_open(&pair, &plugin);
		for (int j = 0; j < 8; j++)
			pair_receive(&pair, data, 1 << 20, NULL);
		pair_send(&pair, data + (4 << 20), 1 << 20, NULL);
		pair_send(&pair, data + (4 << 20), 100, NULL);
		pair_close(&pair);
		EXPECT_EQ(process_count_descriptors(), descriptors);
		EXPECT_EQ(process_count_threads(), threads);
	}
	plugin_end(&plugin);
	free(data);
}

TEST(finalize, "The last finalize leaves no descriptor and no thread.")
{
	int descriptors, threads;
	struct plugin plugin, second;
	struct pair pair;

	plugin_begin(&plugin, &newest);
	plugin_end(&plugin);
	descriptors = process_count_descriptors();
	threads = process_count_threads();
	for (int i = 0; i < 3; i++) {
		plugin_begin(&plugin, &newest);
		plugin_begin(&second, &newest);
		pair_open(&pair, &plugin);
		plugin_end(&second);
		pair_exchange(&pair, 1 << 20, 1 << 20);
		pair_close(&pair);
		plugin_end(&plugin);
	}
	EXPECT_EQ(process_count_descriptors(), descriptors);
	EXPECT_EQ(process_count_threads(), threads);
}

static void finalize_left_open(void)
{
	struct plugin plugin;
	struct pair pair;
	int devices;

	plugin_begin(&plugin, &newest);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
	setenv("CLIMPORT_NET_IFNAME", "^", 1);
	EXPECT_EQ(plugin_init(&plugin), 0);
	devices = plugin_devices(&plugin);
	pair_open(&pair, &plugin);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
	EXPECT_EQ(plugin_init(&plugin), 0);
	EXPECT_EQ(plugin_devices(&plugin), devices);
	pair_close(&pair);
	plugin_end(&plugin);
}

TEST(left_open, "A finalize with a connection left open leaves the devices their numbers.")
{
	test_in_child(finalize_left_open);
}

static void *thread_exchange(void *arg)
{
	struct plugin plugin;
	struct pair pair;

	(void)arg;
	if (!plugin_load(&plugin, PLUGIN_NCCL, 12) || plugin_init(&plugin))
		abort();
	pair_open(&pair, &plugin);
	for (int i = 0; i < 20; i++) {
		pair_exchange(&pair, (size_t)i * 40000, (size_t)i * 40000 + 5);
		pair_exchange(&pair, (size_t)i, (size_t)i);
	}
	pair_close(&pair);
	plugin_end(&plugin);
	return NULL;
}

TEST(threads, "Four threads with a connection each do not disturb each other.")
{
	struct plugin plugin;

	plugin_begin(&plugin, &newest);
	process_run_threads(4, thread_exchange);
	plugin_end(&plugin);
}

#define ORDER_PAIRS 8
#define ORDER_LARGE ((size_t)100000)

/*
 * A large message and a small one behind it, several times before the first end.  Each receive has
 * memory of its own in @data: parts of a large message arrive beside the small one.
 */
static void order_exchange(const struct pair *pair, char *data)
{
	const size_t sizes_of[] = { ORDER_LARGE, 64 };
	void *sends[2 * ORDER_PAIRS], *receives[2 * ORDER_PAIRS];

	for (int i = 0; i < 2 * ORDER_PAIRS; i++)
		receives[i] =
			pair_receive(pair, data + (size_t)(i + 1) * ORDER_LARGE, ORDER_LARGE, NULL);
	for (int i = 0; i < 2 * ORDER_PAIRS; i++)
		sends[i] = pair_send(pair, data, sizes_of[i % 2], NULL);
	for (int i = 0; i < 2 * ORDER_PAIRS; i++)
		EXPECT_EQ(pair_finish(pair, sends[i], receives[i]), sizes_of[i % 2]);
}

static void *order_run(void *arg)
{
	char *data = calloc(1 + 2 * ORDER_PAIRS, ORDER_LARGE);
	struct plugin plugin;
	struct pair pair;

	(void)arg;
	if (!data || !plugin_load(&plugin, PLUGIN_NCCL, 12) || plugin_init(&plugin))
		abort();
	pair_open(&pair, &plugin);
	for (int i = 0; i < 200; i++)
		order_exchange(&pair, data);
	pair_close(&pair);
	plugin_end(&plugin);
	free(data);
	return NULL;
}

TEST(order, "A small message stays behind a large one if other threads use the device.")
{
	struct plugin plugin;

	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer does not see how libfabric hands over what it "
			  "copies");
	plugin_begin(&plugin, &newest);
	process_run_threads(4, order_run);
	plugin_end(&plugin);
}

static void fork_exchange(void)
{
	struct plugin plugin;
	struct pair pair;

	plugin_begin(&plugin, &newest);
	pair_open(&pair, &plugin);
	pair_exchange(&pair, 1 << 20, 1 << 20);
	pair_close(&pair);
	plugin_end(&plugin);
}

TEST(fork, "A child of fork() makes connections of its own, and the parent's go on.")
{
	struct plugin plugin;
	struct pair pair;

	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer ends a child that starts threads");
	plugin_begin(&plugin, &newest);
	pair_open(&pair, &plugin);
	pair_exchange(&pair, 1 << 20, 1 << 20);
	test_in_child(fork_exchange);
	pair_exchange(&pair, 1 << 20, 1 << 20);
	pair_close(&pair);
	plugin_end(&plugin);
}

static struct plugin fork_plugin;
static struct pair fork_pair;
static void *fork_request;

static void fork_close(void)
{
	int descriptors = process_count_descriptors();

	pair_close(&fork_pair);
	EXPECT_EQ(process_count_descriptors(), descriptors);
	EXPECT_EQ(plugin_finalize(&fork_plugin), 0);
}

TEST(fork_closes, "A child of fork() that closes the parent's connections changes nothing.")
{
	plugin_begin(&fork_plugin, &newest);
	pair_open(&fork_pair, &fork_plugin);
	test_in_child(fork_close);
	pair_exchange(&fork_pair, 1 << 20, 1 << 20);
	pair_close(&fork_pair);
	plugin_end(&fork_plugin);
}

/* Each call with what the parent has open. */
static void fork_use(void)
{
	const struct nccl_net_v6 *table = plugin_table(&fork_plugin);
	char data[64], handle[NCCL_NET_HANDLE_SIZE];
	void *result = NULL;
	int done = 0;

	memcpy(handle, fork_pair.handle, sizeof(handle));
	EXPECT(plugin_listen(&fork_plugin, 0, handle, &result));
	EXPECT(plugin_connect(&fork_plugin, 0, handle, &result));
	EXPECT(plugin_accept(&fork_plugin, fork_pair.listener, &result));
	EXPECT(plugin_register(&fork_plugin, fork_pair.sender, data, sizeof(data), NCCL_PTR_HOST,
			       &result));
	EXPECT(plugin_send(&fork_plugin, fork_pair.sender, data, sizeof(data), NULL, &result));
	EXPECT(plugin_receive(&fork_plugin, fork_pair.receiver, data, sizeof(data), NULL, &result));
	EXPECT(plugin_flush(&fork_plugin, fork_pair.receiver, data, sizeof(data), NULL, &result));
	EXPECT(table->test(fork_request, &done, NULL));
}

static void fork_use_after_init(void)
{
	char data[64];
	void *result = NULL;
	int done = 0;

	EXPECT_EQ(plugin_init(&fork_plugin), 0);
	EXPECT(plugin_send(&fork_plugin, fork_pair.sender, data, sizeof(data), NULL, &result));
	EXPECT(plugin_receive(&fork_plugin, fork_pair.receiver, data, sizeof(data), NULL, &result));
	EXPECT(plugin_table(&fork_plugin)->test(fork_request, &done, NULL));
	EXPECT_EQ(plugin_finalize(&fork_plugin), 0);
}

struct fork_child {
	const char *name;
	void (*run)(void);
};

static const struct fork_child fork_children[] = {
	{ "before_init", fork_use },
	{ "after_init", fork_use_after_init },
};

TEST_EACH(fork_uses, struct fork_child, fork_children,
	  "In a child of fork() each call with a connection of the parent's fails.")
{
	char from[6] = "whole", to[100];

	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer ends a child that starts threads");
	plugin_begin(&fork_plugin, &newest);
	pair_open(&fork_pair, &fork_plugin);
	fork_request = pair_receive(&fork_pair, to, sizeof(to), NULL);
	test_in_child(row->run);
	EXPECT_EQ(pair_finish(&fork_pair, pair_send(&fork_pair, from, sizeof(from), NULL),
			      fork_request),
		  sizeof(from));
	pair_close(&fork_pair);
	plugin_end(&fork_plugin);
}

TEST(old_library, "Init fails with a warning if libfabric is older than 1.17.")
{
	int warnings = plugin_logged(NCCL_LOG_WARN);
	struct plugin plugin;

	setenv("CLIMPORT_NET_LIBFABRIC", OLD_LIBFABRIC, 1);
	EXPECT(plugin_load(&plugin, PLUGIN_ALONE, 6));
	EXPECT(plugin_init(&plugin));
	EXPECT_EQ(plugin_logged(NCCL_LOG_WARN), warnings + 1);
	unsetenv("CLIMPORT_NET_LIBFABRIC");
	plugin_unload(&plugin);
}

TEST(limited, "The core is told of the largest message that the endpoints take.")
{
	struct nccl_net_properties_v12 properties;
	struct plugin plugin;

	setenv("CLIMPORT_NET_PROVIDER", "tcp", 1);
	setenv("CLIMPORT_NET_IFNAME", "lo", 1);
	setenv("CLIMPORT_NET_LIBFABRIC", LIMITED_LIBFABRIC, 1);
	EXPECT(plugin_load(&plugin, PLUGIN_LIMITED, PLUGIN_NEWEST));
	EXPECT_EQ(plugin_init(&plugin), 0);
	EXPECT_EQ(plugin_properties(&plugin, 0, &properties), 0);
	EXPECT_EQ(properties.maxP2pBytes, 1 << 20);
	EXPECT_EQ(properties.maxCollBytes, 1 << 20);
	plugin_end(&plugin);
	unsetenv("CLIMPORT_NET_LIBFABRIC");
}

struct failure {
	const char *name, *variable, *value;
};

static const struct failure failures[] = {
	{ "no_provider", "CLIMPORT_NET_PROVIDER", "none" },
	{ "no_interface", "CLIMPORT_NET_IFNAME", "=absent0" },
};

static void failed_init(void)
{
	struct plugin plugin;

	for (int version = PLUGIN_OLDEST; version <= PLUGIN_NEWEST; version++) {
		EXPECT(plugin_load(&plugin, PLUGIN_NCCL, version));
		EXPECT(plugin_init(&plugin));
		EXPECT_EQ(plugin_devices(&plugin), 0);
		plugin_end(&plugin);
	}
}

TEST_EACH(init_fails, struct failure, failures,
	  "Init fails without a device, so that the core goes on to another network.")
{
	setenv("CLIMPORT_NET_PROVIDER", "tcp", 1);
	setenv("CLIMPORT_NET_IFNAME", "lo", 1);
	setenv(row->variable, row->value, 1);
	test_in_child(failed_init);
}
