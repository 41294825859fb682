/* SPDX-License-Identifier: Apache-2.0 */
/* libfabric 1.11, as far as the plugin calls the library: the version is refused. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

struct fi_info;

EXPORTED uint32_t fi_version(void);
EXPORTED int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct fi_info **info);
EXPORTED void fi_freeinfo(struct fi_info *info);
EXPORTED struct fi_info *fi_dupinfo(const struct fi_info *info);
EXPORTED int fi_fabric(void *attributes, void **fabric, void *context);

uint32_t fi_version(void)
{
	return 1 << 16 | 11;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info)
{
	(void)version, (void)node, (void)service, (void)flags, (void)hints, (void)info;
	return -ENOSYS;
}

void fi_freeinfo(struct fi_info *info)
{
	(void)info;
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	(void)info;
	return NULL;
}

int fi_fabric(void *attributes, void **fabric, void *context)
{
	(void)attributes, (void)fabric, (void)context;
	return -ENOSYS;
}
