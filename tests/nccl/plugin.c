/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int lines[NCCL_LOG_TRACE + 1];

int plugin_logged(enum nccl_log_level level)
{
	return atomic_load(&lines[level]);
}

__attribute__((format(printf, 5, 6))) static void plugin_log(enum nccl_log_level level,
							     unsigned long subsystems,
							     const char *file, int line,
							     const char *format, ...)
{
	va_list arguments;

	(void)subsystems, (void)file, (void)line;
	atomic_fetch_add(&lines[level], 1);
	if (!getenv("TEST_NCCL_LOG"))
		return;
	va_start(arguments, format);
	printf("# ");
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
}

bool plugin_load(struct plugin *plugin, const char *file, int version)
{
	char symbol[32];

	*plugin = (struct plugin){ .version = version };
	plugin->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!plugin->library) {
		printf("# %s\n", dlerror());
		return false;
	}
	snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", version);
	plugin->table = dlsym(plugin->library, symbol);
	if (!plugin->table)
		dlclose(plugin->library);
	return plugin->table;
}

void plugin_unload(struct plugin *plugin)
{
	dlclose(plugin->library);
	plugin->library = NULL;
}

const char *plugin_name(const struct plugin *plugin)
{
	return plugin_table(plugin)->name;
}

#define TABLE(version) ((const struct nccl_net_v##version *)plugin->table)

enum nccl_result plugin_init(struct plugin *plugin)
{
	static struct nccl_net_config config = { .trafficClass = -1 };

	if (plugin->version < 10)
		return TABLE(6)->init(plugin_log);
	if (plugin->version == 10)
		return TABLE(10)->init(plugin_log, NULL);
	return TABLE(11)->init(&plugin->context, 1, &config, plugin_log, NULL);
}

/* An old core never finalizes.  A test begins with a plugin that nobody uses. */
static enum nccl_result plugin_finalize_old(const struct plugin *plugin)
{
	const struct nccl_net_v12 *newest = dlsym(plugin->library, "ncclNetPlugin_v12");
	struct nccl_net_config config = { .trafficClass = -1 };
	void *context = NULL;

	if (newest->init(&context, 1, &config, plugin_log, NULL))
		return NCCL_SUCCESS; /* the old init failed, too */
	newest->finalize(context);
	return newest->finalize(context);
}

enum nccl_result plugin_finalize(struct plugin *plugin)
{
	return plugin->version < 11 ? plugin_finalize_old(plugin)
				    : TABLE(11)->finalize(plugin->context);
}

int plugin_devices(const struct plugin *plugin)
{
	int count = -1;

	return TABLE(6)->devices(&count) ? -1 : count;
}

/* The properties that a version shares with version 12. */
#define PROPERTIES_OF(version)                                                           \
	struct nccl_net_properties_v##version of = { 0 };                                \
	result = TABLE(version)->getProperties(device, &of);                             \
	*to = (struct nccl_net_properties_v12)                                           \
	{                                                                                \
		.name = of.name, .pciPath = of.pciPath, .guid = of.guid,                 \
		.ptrSupport = of.ptrSupport, .speed = of.speed, .port = of.port,         \
		.latency = of.latency, .maxComms = of.maxComms, .maxRecvs = of.maxRecvs, \
	}

enum nccl_result plugin_properties(const struct plugin *plugin, int device,
				   struct nccl_net_properties_v12 *to)
{
	enum nccl_result result;

	if (plugin->version == 6) {
		PROPERTIES_OF(6);
	} else if (plugin->version == 7) {
		PROPERTIES_OF(7);
	} else if (plugin->version == 8) {
		PROPERTIES_OF(8);
		to->regIsGlobal = of.regIsGlobal;
	} else if (plugin->version < 11) {
		PROPERTIES_OF(9);
		to->regIsGlobal = of.regIsGlobal;
		to->forceFlush = of.forceFlush;
		to->vProps.ndevs = of.vProps.ndevs;
		to->maxP2pBytes = of.maxP2pBytes;
	} else if (plugin->version == 11) {
		PROPERTIES_OF(11);
		to->regIsGlobal = of.regIsGlobal;
		to->forceFlush = of.forceFlush;
		to->vProps.ndevs = of.vProps.ndevs;
		to->maxP2pBytes = of.maxP2pBytes;
		to->maxMultiRequestSize = of.maxMultiRequestSize;
	} else {
		result = TABLE(12)->getProperties(device, to);
	}
	return result;
}

enum nccl_result plugin_listen(const struct plugin *plugin, int device, void *handle, void **l)
{
	if (plugin->version < 11)
		return TABLE(6)->listen(device, handle, l);
	return TABLE(11)->listen(plugin->context, device, handle, l);
}

enum nccl_result plugin_connect(const struct plugin *plugin, int device, void *handle, void **c)
{
	static struct nccl_net_config config = { .trafficClass = -1 };
	void *device_comm = NULL;

	if (plugin->version == 6)
		return TABLE(6)->connect(device, handle, c);
	if (plugin->version < 10)
		return TABLE(7)->connect(device, handle, c, &device_comm);
	if (plugin->version == 10)
		return TABLE(10)->connect(device, &config, handle, c, NULL);
	return TABLE(11)->connect(plugin->context, device, handle, c, &device_comm);
}

enum nccl_result plugin_accept(const struct plugin *plugin, void *l, void **c)
{
	void *device_comm = NULL;

	if (plugin->version == 6)
		return TABLE(6)->accept(l, c);
	return TABLE(7)->accept(l, c, &device_comm);
}

enum nccl_result plugin_register(const struct plugin *plugin, void *comm, void *data, size_t size,
				 int type, void **mhandle)
{
	if (plugin->version < 8)
		return TABLE(6)->regMr(comm, data, (int)size, type, mhandle);
	return TABLE(8)->regMr(comm, data, size, type, mhandle);
}

enum nccl_result plugin_send(const struct plugin *plugin, void *comm, void *data, size_t size,
			     void *mhandle, void **request)
{
	if (plugin->version < 9)
		return TABLE(6)->isend(comm, data, (int)size, 7, mhandle, request);
	if (plugin->version == 9)
		return TABLE(9)->isend(comm, data, size, 7, mhandle, request);
	return TABLE(10)->isend(comm, data, size, 7, mhandle, NULL, request);
}

enum nccl_result plugin_receive(const struct plugin *plugin, void *comm, void *data, size_t size,
				void *mhandle, void **request)
{
	int small = (int)size, tag = 7;

	if (plugin->version < 9)
		return TABLE(6)->irecv(comm, 1, &data, &small, &tag, &mhandle, request);
	/* NCCL 2.24 puts a hint there. */
	*request = (void *)1;
	if (plugin->version == 9)
		return TABLE(9)->irecv(comm, 1, &data, &size, &tag, &mhandle, request);
	return TABLE(10)->irecv(comm, 1, &data, &size, &tag, &mhandle, NULL, request);
}

enum nccl_result plugin_flush(const struct plugin *plugin, void *comm, void *data, size_t size,
			      void *mhandle, void **request)
{
	int small = (int)size;

	*request = (void *)1;
	return TABLE(6)->iflush(comm, 1, &data, &small, &mhandle, request);
}
