/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CLIMPORT_NET_INNER: the plugin over another plugin, which is the plugin of the transport of
 * loopback.c with one version of the interface.
 */
#include "CL/climport.h"
#include "fake_cuda.h"
#include "harness.h"
#include "loopback.h"
#include "pair.h"
#include "process.h"
#include "versions.h"

#include <dlfcn.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define COMPUTE_MAJOR 75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */

static struct plugin plugin;

static void inner_begin(const char *file)
{
	static void *context;

	if (!access("/dev/gdmabuf", F_OK))
		test_skip("/dev/gdmabuf is there");
	fake_cuda_reset(1);
	if (!context)
		context = fake_cuda_context_create(0);
	fake_cuda_set_current(context);
	fake_cuda_set_attribute(0, COMPUTE_MAJOR, 9);
	unsetenv("LOOPBACK_EMPTY");
	setenv("CLIMPORT_NET_PROVIDER", "none", 1);
	setenv("CLIMPORT_NET_INNER", file, 1);
	EXPECT(plugin_load(&plugin, PLUGIN_NCCL, PLUGIN_NEWEST));
}

static void inner_end(void)
{
	EXPECT_EQ(plugin_finalize(&plugin), 0);
	plugin_unload(&plugin);
}

static void inner_begin_version(const struct version *version)
{
	char file[256];

	snprintf(file, sizeof(file), "%s/loopback-%s.so", LOOPBACKS, version->name);
	inner_begin(file);
	EXPECT_EQ(plugin_init(&plugin), 0);
}

/* Mappings of the other plugin. */
static struct loopback_counts inner_counts(void)
{
	void *library = dlopen(getenv("CLIMPORT_NET_INNER"), RTLD_NOW | RTLD_NOLOAD);
	void *function = library ? dlsym(library, "loopback_counts") : NULL;
	loopback_counts_fn counts;

	EXPECT(function);
	memcpy(&counts, &function, sizeof(counts));
	dlclose(library);
	return counts();
}

TEST_EACH(host, struct version, versions, "Host memory goes through another plugin of the version.")
{
	static const size_t sizes[] = { 0, 1, 512, 100000, 4 << 20 };
	struct nccl_net_properties_v12 properties;
	struct pair pair;

	inner_begin_version(row);
	EXPECT_EQ(plugin_properties(&plugin, 0, &properties), 0);
	EXPECT_EQ(strcmp(properties.name, "loopback"), 0);
	EXPECT_EQ(properties.regIsGlobal, 0);
	EXPECT_EQ(properties.maxComms, LOOPBACK_CONNECTIONS);
	if (row->number >= 9)
		EXPECT_EQ(properties.maxP2pBytes, LOOPBACK_MESSAGE);
	pair_open(&pair, &plugin);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		pair_exchange(&pair, sizes[i], sizes[i] + 100);
	pair_close(&pair);
	EXPECT_EQ(inner_counts().mappings, 0);
	EXPECT_EQ(inner_counts().connections, 0);
	inner_end();
}

TEST_EACH(cuda, struct version, versions,
	  "The other plugin gets a dma-buf of climport's for a CUDA pointer, one for a connection.")
{
	uintptr_t from;
	void *mhandles[3], *host;
	char to[700];
	struct pair pair;
	int mapped;

	inner_begin_version(row);
	pair_open(&pair, &plugin);
	from = fake_cuda_alloc(0, 8 * PAGE);
	message_fill(fake_cuda_memory(from + 5000), sizeof(to), 3);
	mapped = inner_counts().mapped;
	for (size_t i = 0; i < 3; i++)
		EXPECT_EQ(plugin_register(&plugin, i < 2 ? pair.sender : pair.receiver,
					  (void *)(from + i * PAGE), 2 * PAGE, NCCL_PTR_CUDA,
					  &mhandles[i]),
			  0);
	EXPECT_EQ(inner_counts().mapped, mapped + 2);
	EXPECT_EQ(plugin_register(&plugin, pair.receiver, to, sizeof(to), NCCL_PTR_HOST, &host), 0);
	EXPECT_EQ(pair_finish(&pair,
			      pair_send(&pair, (void *)(from + 5000), sizeof(to), mhandles[0]),
			      pair_receive(&pair, to, sizeof(to), host)),
		  sizeof(to));
	EXPECT(message_is(to, sizeof(to), 3));
	for (size_t i = 0; i < 3; i++)
		EXPECT_EQ(plugin_table(&plugin)->deregMr(pair.sender, mhandles[i]), 0);
	EXPECT_EQ(plugin_table(&plugin)->deregMr(pair.receiver, host), 0);
	EXPECT_EQ(inner_counts().mappings, 0);
	pair_close(&pair);
	climport_invalidate(NULL, SIZE_MAX);
	inner_end();
	fake_cuda_free(from);
}

TEST_EACH(flush, struct version, versions, "The other plugin makes the flush after a receive.")
{
	struct pair pair;
	uintptr_t memory;
	void *mhandle, *request;
	int flushes;

	inner_begin_version(row);
	pair_open(&pair, &plugin);
	memory = fake_cuda_alloc(0, 8 * PAGE);
	EXPECT_EQ(plugin_register(&plugin, pair.receiver, (void *)memory, 8 * PAGE, NCCL_PTR_CUDA,
				  &mhandle),
		  0);
	flushes = inner_counts().flushes;
	EXPECT_EQ(plugin_flush(&plugin, pair.receiver, (void *)(memory + 5000), 100, mhandle,
			       &request),
		  0);
	EXPECT_EQ(inner_counts().flushes, flushes + 1);
	EXPECT_EQ(plugin_table(&plugin)->deregMr(pair.receiver, mhandle), 0);
	pair_close(&pair);
	climport_invalidate(NULL, SIZE_MAX);
	inner_end();
	fake_cuda_free(memory);
}

TEST(no_dmabuf,
     "A plugin that claims dma-bufs, and has no function for them, gets host memory alone.")
{
	struct nccl_net_properties_v12 properties;
	struct pair pair;
	void *mhandle;

	inner_begin(WITHOUT_DMABUF);
	EXPECT_EQ(plugin_init(&plugin), 0);
	EXPECT_EQ(plugin_properties(&plugin, 0, &properties), 0);
	EXPECT_EQ(properties.ptrSupport, NCCL_PTR_HOST);
	pair_open(&pair, &plugin);
	EXPECT(plugin_register(&plugin, pair.sender, &pair, sizeof(pair), NCCL_PTR_CUDA, &mhandle));
	EXPECT(!mhandle);
	pair_exchange(&pair, 100000, 100000);
	pair_close(&pair);
	inner_end();
}

struct failure {
	const char *name, *file;
};

static const struct failure failures[] = {
	{ "absent", "/nonexistent.so" },
	{ "no_plugin", "libc.so.6" },
	{ "itself", PLUGIN_NCCL },
};

TEST(closed, "A CUDA registration ends at the other plugin when its connection closes.")
{
	struct pair pair, second;
	uintptr_t memory;
	void *old, *new;

	inner_begin_version(&versions[3]);
	pair_open(&pair, &plugin);
	memory = fake_cuda_alloc(0, 8 * PAGE);
	EXPECT_EQ(plugin_register(&plugin, pair.sender, (void *)memory, PAGE, NCCL_PTR_CUDA, &old),
		  0);
	EXPECT_EQ(inner_counts().mappings, 1);
	EXPECT_EQ(plugin_table(&plugin)->closeSend(pair.sender), 0);
	EXPECT_EQ(inner_counts().mappings, 0);
	second = pair;
	pair_connect(&second);
	EXPECT_EQ(
		plugin_register(&plugin, second.sender, (void *)memory, PAGE, NCCL_PTR_CUDA, &new),
		0);
	EXPECT_EQ(inner_counts().mappings, 1);
	EXPECT_EQ(plugin_table(&plugin)->deregMr(pair.sender, old), 0);
	EXPECT_EQ(inner_counts().mappings, 1);
	EXPECT_EQ(plugin_table(&plugin)->deregMr(second.sender, new), 0);
	EXPECT_EQ(inner_counts().mappings, 0);
	pair.sender = NULL;
	EXPECT_EQ(plugin_table(&plugin)->closeRecv(second.receiver), 0);
	EXPECT_EQ(plugin_table(&plugin)->closeSend(second.sender), 0);
	pair_close(&pair);
	climport_invalidate(NULL, SIZE_MAX);
	inner_end();
	fake_cuda_free(memory);
}

TEST(no_device, "Init fails if the other plugin has no device, and takes no transport of its own.")
{
	inner_begin(LOOPBACKS "/loopback-v9.so");
	setenv("LOOPBACK_EMPTY", "1", 1);
	setenv("CLIMPORT_NET_PROVIDER", "tcp", 1);
	setenv("CLIMPORT_NET_IFNAME", "lo", 1);
	EXPECT(plugin_init(&plugin));
	EXPECT_EQ(plugin_devices(&plugin), 0);
	plugin_unload(&plugin);
}

TEST_EACH(refused, struct failure, failures,
	  "Init fails if the other plugin is no plugin, and takes no transport of its own instead.")
{
	inner_begin(row->file);
	setenv("CLIMPORT_NET_PROVIDER", "tcp", 1);
	setenv("CLIMPORT_NET_IFNAME", "lo", 1);
	EXPECT(plugin_init(&plugin));
	EXPECT_EQ(plugin_devices(&plugin), 0);
	plugin_unload(&plugin);
}
