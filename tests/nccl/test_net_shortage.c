/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin over libfabric's tcp, while one allocation of the plugin's own fails. */
#include "harness.h"
#include "pair.h"
#include "process.h"
#include "net_shortage.h"

#include <dlfcn.h>
#include <unistd.h>

#define MOST_ALLOCATIONS 100

static struct plugin plugin;
static void (*fail_at)(int nth);
static void (*fail_call_at)(int nth, void (*instead)(void));
static int (*fail_left)(void);
static int shortage_devices; /* of every process */

static void net_shortage_begin(void)
{
	setenv("CLIMPORT_NET_PROVIDER", "tcp", 1);
	setenv("CLIMPORT_NET_IFNAME", "lo", 1);
	EXPECT(plugin_load(&plugin, PLUGIN_SHORTAGE, PLUGIN_NEWEST));
	*(void **)&fail_at = dlsym(plugin.library, "net_shortage_at");
	*(void **)&fail_call_at = dlsym(plugin.library, "net_shortage_call_at");
	*(void **)&fail_left = dlsym(plugin.library, "net_shortage_left");
	EXPECT(fail_at && fail_call_at && fail_left);
}

/* The end that is left when the other has failed hears of the failure. */
static bool net_shortage_connect(struct pair *pair)
{
	char handle[NCCL_NET_HANDLE_SIZE];
	enum nccl_result connects = NCCL_SUCCESS, accepts = NCCL_SUCCESS;

	memcpy(handle, pair->handle, sizeof(handle));
	while ((!pair->sender || !pair->receiver) && !connects && !accepts) {
		if (!pair->sender)
			connects = plugin_connect(&plugin, 0, handle, &pair->sender);
		if (!pair->receiver && !connects)
			accepts = plugin_accept(&plugin, pair->listener, &pair->receiver);
	}
	EXPECT_EQ(plugin_table(&plugin)->closeListen(pair->listener), 0);
	while (!connects && !pair->sender)
		connects = plugin_connect(&plugin, 0, handle, &pair->sender);
	return pair->sender && pair->receiver;
}

static bool net_shortage_exchange(const struct pair *pair)
{
	static char from[300000], to[300000];
	void *from_mhandle = NULL, *to_mhandle = NULL;
	bool done = !plugin_register(&plugin, pair->sender, from, sizeof(from), NCCL_PTR_HOST,
				     &from_mhandle) &&
		    !plugin_register(&plugin, pair->receiver, to, sizeof(to), NCCL_PTR_HOST,
				     &to_mhandle);

	if (done)
		pair_finish(pair, pair_send(pair, from, sizeof(from), from_mhandle),
			    pair_receive(pair, to, sizeof(to), to_mhandle));
	EXPECT_EQ(plugin_table(&plugin)->deregMr(pair->sender, from_mhandle), 0);
	EXPECT_EQ(plugin_table(&plugin)->deregMr(pair->receiver, to_mhandle), 0);
	return done;
}

/* From init to finalize.  False: a call has failed. */
static bool net_shortage_run(void)
{
	struct pair pair = { .plugin = &plugin };
	bool done = false;

	if (plugin_init(&plugin))
		return false;
	if (!plugin_listen(&plugin, 0, pair.handle, &pair.listener))
		done = net_shortage_connect(&pair) && net_shortage_exchange(&pair);
	EXPECT_EQ(plugin_table(&plugin)->closeSend(pair.sender), 0);
	EXPECT_EQ(plugin_table(&plugin)->closeRecv(pair.receiver), 0);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
	return done;
}

TEST(allocations,
     "Whichever allocation fails, a call fails, nothing is left, and the next run is whole.")
{
	int descriptors, nth = 0;

	net_shortage_begin();
	EXPECT(net_shortage_run());
	descriptors = process_count_descriptors();
	do {
		alarm(TEST_HANG_S);
		fail_at(++nth);
		EXPECT_EQ(net_shortage_run(), fail_left() > 0);
		EXPECT_EQ(process_count_descriptors(), descriptors);
	} while (!fail_left() && nth < MOST_ALLOCATIONS);
	printf("# %d allocations\n", nth - 1);
	fail_at(0);
	EXPECT(nth > 5 && nth < MOST_ALLOCATIONS);
	EXPECT(net_shortage_run());
	EXPECT_EQ(process_count_descriptors(), descriptors);
	plugin_unload(&plugin);
}

static void net_shortage_init_in_child(void)
{
	alarm(TEST_HANG_S);
	EXPECT_EQ(plugin_init(&plugin), 0);
	EXPECT_EQ(plugin_devices(&plugin), shortage_devices);
}

static void net_shortage_fork(void)
{
	test_in_child_of_thread(net_shortage_init_in_child);
}

TEST(fork_in_init, "A child that is forked while another thread opens the devices has all devices.")
{
	int nth = 0;

	net_shortage_begin();
	setenv("CLIMPORT_NET_IFNAME", "^none", 1);
	EXPECT_EQ(plugin_init(&plugin), 0);
	shortage_devices = plugin_devices(&plugin);
	EXPECT_EQ(plugin_finalize(&plugin), 0);
	do {
		fail_call_at(++nth, net_shortage_fork);
		EXPECT_EQ(plugin_init(&plugin), 0);
		EXPECT_EQ(plugin_finalize(&plugin), 0);
	} while (!fail_left());
	fail_at(0);
	EXPECT(nth > shortage_devices);
	plugin_unload(&plugin);
}
