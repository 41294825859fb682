/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of messages, as libfabric's memory regions.  The provider tcp needs none.  A device whose
 * provider needs regions has one lane, and so one domain.
 */
#include "nccl/libfabric/fabric.h"
#include "nccl/log.h"

#include <errno.h>
#include <stdlib.h>

struct fabric_mapping {
	struct fabric_device *device;
	struct fid_mr *mr; /* NULL: the provider needs none */
	bool is_readable;  /* by endpoints of the process, for flushes */
};

/*
 * Of libfabric 1.20 on: the flag of fi_mr_regattr(), and the place of the dma-buf in the attributes.
 * Headers of Debian 12 are older.
 */
#define MR_DMABUF (1ULL << 40)

struct mr_dmabuf {
	int fd;
	uint64_t offset;
	size_t len;
	void *base_addr; /* the address that names byte 0 of the dma-buf */
};

static int mapping_register(struct fabric_mapping *mapping, const struct transport_range *range)
{
	const struct mr_dmabuf dmabuf = {
		.fd = range->fd,
		.offset = range->offset,
		.len = range->size,
		.base_addr = (char *)range->base - range->offset,
	};
	const uint64_t readable = mapping->is_readable ? FI_REMOTE_READ : 0;
	struct iovec memory = { .iov_base = (void *)range->base, .iov_len = range->size };
	struct {
		struct fi_mr_attr known;
		uint64_t later[16]; /* members of newer libraries: zero */
	} attributes = { .known = {
				 .mr_iov = range->fd < 0 ? &memory : (const void *)&dmabuf,
				 .iov_count = 1,
				 .access = FI_SEND | FI_RECV | readable,
				 .iface = FI_HMEM_SYSTEM,
			 } };

	if (range->fd >= 0 && fabric_library.version() < FI_VERSION(1, 20))
		return -EOPNOTSUPP;
	return fi_mr_regattr(mapping->device->lanes[0].domain, &attributes.known,
			     range->fd < 0 ? 0 : MR_DMABUF, &mapping->mr);
}

int fabric_map(int number, void *connection, const struct transport_range *range, void **result)
{
	struct fabric_device *device = fabric_device_at(number);
	struct fabric_mapping *mapping;
	int err;

	(void)connection;
	if (!fabric_device_needs_mappings(device)) {
		*result = NULL;
		return range->fd < 0 ? 0 : -EOPNOTSUPP;
	}
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return -ENOMEM;
	mapping->device = device;
	mapping->is_readable = range->fd >= 0 && fabric_device_can_read(device);
	err = fabric_device_get(device);
	if (err)
		goto free_mapping;
	err = mapping_register(mapping, range);
	if (err)
		goto put_device;
	*result = mapping;
	return 0;
put_device:
	fabric_device_put(device);
free_mapping:
	free(mapping);
	return err;
}

void fabric_unmap(void *handle)
{
	struct fabric_mapping *mapping = handle;

	if (!mapping || !fabric_device_is_own(mapping->device))
		return;
	fi_close(&mapping->mr->fid);
	fabric_device_put(mapping->device);
	free(mapping);
}

bool fabric_mapping_key(void *handle, uint64_t *key)
{
	const struct fabric_mapping *mapping = handle;

	if (!mapping || !mapping->is_readable)
		return false;
	*key = fi_mr_key(mapping->mr);
	return true;
}

void *fabric_mapping_descriptor(void *handle)
{
	struct fabric_mapping *mapping = handle;

	return mapping ? fi_mr_desc(mapping->mr) : NULL;
}
