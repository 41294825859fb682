/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/libfabric/fabric.h"
#include "nccl/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

struct fabric_library fabric_library;

static const struct {
	const char *name;
	void **place;
} library_functions[] = {
	{ "fi_version", (void **)&fabric_library.version },
	{ "fi_getinfo", (void **)&fabric_library.getinfo },
	{ "fi_freeinfo", (void **)&fabric_library.freeinfo },
	{ "fi_dupinfo", (void **)&fabric_library.dupinfo },
	{ "fi_fabric", (void **)&fabric_library.fabric },
};

static bool library_is_old(void)
{
	uint32_t version = fabric_library.version();

	if (version >= FABRIC_API)
		return false;
	net_warn("libfabric %u.%u is older than %u.%u", FI_MAJOR(version), FI_MINOR(version),
		 FI_MAJOR(FABRIC_API), FI_MINOR(FABRIC_API));
	fabric_library.getinfo = NULL;
	return true;
}

/* Never closed: providers have threads and handlers of their own. */
int fabric_library_load(void)
{
	const char *file = getenv("CLIMPORT_NET_LIBFABRIC");
	void *library;

	if (fabric_library.getinfo)
		return 0;
	library = dlopen(file && *file ? file : "libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		net_info("%s", dlerror());
		return -ENOENT;
	}
	for (size_t i = 0; i < sizeof(library_functions) / sizeof(library_functions[0]); i++) {
		*library_functions[i].place = dlsym(library, library_functions[i].name);
		if (!*library_functions[i].place) {
			net_info("libfabric has no %s", library_functions[i].name);
			fabric_library.getinfo = NULL;
			return -ENOENT;
		}
	}
	return library_is_old() ? -ENOENT : 0;
}

size_t fabric_setting(const char *name, size_t otherwise, size_t least, size_t most)
{
	const char *text = getenv(name);
	char *end;
	size_t value;

	if (!text || !*text)
		return otherwise;
	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || *end || value < least || value > most) {
		net_warn("%s=%s is no number from %zu to %zu", name, text, least, most);
		return otherwise;
	}
	return value;
}
