/* SPDX-License-Identifier: Apache-2.0 */
/* libfabric, whose endpoints take messages of 1 MiB at most, as adapters have a limit, too. */
#include <dlfcn.h>
#include <rdma/fabric.h>

#define LIMITED_MESSAGE (1 << 20)

/* A function of the plugin's library, under the name that the plugin looks for. */
#define EXPORTED_AS(name) __asm__(name) __attribute__((visibility("default")))

uint32_t limited_version(void) EXPORTED_AS("fi_version");
int limited_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info **info) EXPORTED_AS("fi_getinfo");
void limited_freeinfo(struct fi_info *info) EXPORTED_AS("fi_freeinfo");
struct fi_info *limited_dupinfo(const struct fi_info *info) EXPORTED_AS("fi_dupinfo");
int limited_fabric(struct fi_fabric_attr *attributes, struct fid_fabric **fabric, void *context)
	EXPORTED_AS("fi_fabric");

static void *limited_next(const char *name)
{
	return dlsym(dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL), name);
}

uint32_t limited_version(void)
{
	uint32_t (*next)(void) = limited_next("fi_version");

	return next();
}

int limited_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info **info)
{
	int (*next)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
		    struct fi_info **) = limited_next("fi_getinfo");
	int err = next(version, node, service, flags, hints, info);

	for (struct fi_info *i = err ? NULL : *info; i; i = i->next)
		i->ep_attr->max_msg_size = LIMITED_MESSAGE;
	return err;
}

void limited_freeinfo(struct fi_info *info)
{
	void (*next)(struct fi_info *) = limited_next("fi_freeinfo");

	next(info);
}

struct fi_info *limited_dupinfo(const struct fi_info *info)
{
	struct fi_info *(*next)(const struct fi_info *) = limited_next("fi_dupinfo");

	return next(info);
}

int limited_fabric(struct fi_fabric_attr *attributes, struct fid_fabric **fabric, void *context)
{
	int (*next)(struct fi_fabric_attr *, struct fid_fabric **, void *) =
		limited_next("fi_fabric");

	return next(attributes, fabric, context);
}
