/* SPDX-License-Identifier: Apache-2.0 */
/* A net plugin as the core sees the plugin: loaded by name, called by one version of the interface. */
#ifndef TESTS_NCCL_PLUGIN_H
#define TESTS_NCCL_PLUGIN_H

#include "nccl/net_abi.h"

#include <stdbool.h>

struct plugin {
	void *library;
	int version;
	const void *table; /* struct nccl_net_vN */
	void *context;
};

#define PLUGIN_OLDEST 6
#define PLUGIN_NEWEST 12

/* false: no such file, or the file has no such version. */
bool plugin_load(struct plugin *plugin, const char *file, int version);
void plugin_unload(struct plugin *plugin);

const char *plugin_name(const struct plugin *plugin);
enum nccl_result plugin_init(struct plugin *plugin);
/* The counterpart of a plugin_init(), also before version 11. */
enum nccl_result plugin_finalize(struct plugin *plugin);
int plugin_devices(const struct plugin *plugin);
/* In the types of version 12; what older versions do not have is 0. */
enum nccl_result plugin_properties(const struct plugin *plugin, int device,
				   struct nccl_net_properties_v12 *properties);
enum nccl_result plugin_listen(const struct plugin *plugin, int device, void *handle, void **l);
enum nccl_result plugin_connect(const struct plugin *plugin, int device, void *handle, void **c);
enum nccl_result plugin_accept(const struct plugin *plugin, void *l, void **c);
enum nccl_result plugin_register(const struct plugin *plugin, void *comm, void *data, size_t size,
				 int type, void **mhandle);
enum nccl_result plugin_send(const struct plugin *plugin, void *comm, void *data, size_t size,
			     void *mhandle, void **request);
enum nccl_result plugin_receive(const struct plugin *plugin, void *comm, void *data, size_t size,
				void *mhandle, void **request);

enum nccl_result plugin_flush(const struct plugin *plugin, void *comm, void *data, size_t size,
			      void *mhandle, void **request);

/* The functions that every version has alike. */
static inline const struct nccl_net_v6 *plugin_table(const struct plugin *plugin)
{
	return plugin->table;
}

/* Lines that the plugin has logged at the level, since the start. */
int plugin_logged(enum nccl_log_level level);

#endif /* TESTS_NCCL_PLUGIN_H */
