/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/rm/rm_device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/lock.h"
#include "util/log.h"

int rm_device_pin(const struct rm_device *device, const void *addr, size_t size, uint32_t *object)
{
	struct rm_host_memory memory = {
		.client = device->client->handle,
		.parent = device->handle,
		.class = RM_CLASS_OS_DESCRIPTOR,
		.flags = RM_HOST_PAGES | RM_HOST_CACHED | RM_HOST_NO_MAP,
		.address = (uintptr_t)addr,
		.limit = size - 1,
		.fd = -1,
	};
	char what[80];
	int ret;

	snprintf(what, sizeof(what), "%zu bytes of host memory at %p", size, addr);
	do {
		memory.object = *object = rm_client_new_handle(device->client);
		ret = rm_ioctl(device->node.fd, RM_ALLOCATE_HOST_MEMORY, &memory, what);
		if (!ret)
			ret = rm_result(memory.status, what);
	} while (ret == -EEXIST);
	return ret;
}

int rm_device_attach(const struct rm_device *device, int dmabuf, size_t size, uint32_t *object)
{
	const struct rm_file_memory memory = {
		.attributes = RM_FILE_PCI | RM_FILE_PAGES | RM_FILE_WRITE_BACK,
		.attributes2 = RM_FILE_GPU_CACHEABLE_NO,
		.descriptor = (uint64_t)dmabuf,
		.limit = size - 1,
		.descriptor_type = RM_FILE_HANDLE,
	};
	char what[80];
	int ret;

	snprintf(what, sizeof(what), "%zu bytes of dma-buf %d", size, dmabuf);
	do {
		*object = rm_client_new_handle(device->client);
		ret = rm_client_allocate(device->client, device->handle, RM_CLASS_OS_DESCRIPTOR,
					 &memory, what, object);
	} while (ret == -EEXIST);
	return ret;
}

static int rm_device_export_to(const struct rm_device *device, uint32_t object, int fd)
{
	struct rm_export *export = calloc(1, sizeof(*export));
	int ret;

	if (!export)
		return log_errno(ENOMEM, "no memory for an export");
	export->fd = fd;
	export->device = device->handle;
	export->max_objects = export->object_count = 1;
	export->objects[0] = object;
	ret = rm_client_control(device->client, RM_EXPORT_OBJECTS_TO_FD, export, sizeof(*export),
				"the export of an object");
	free(export);
	return ret;
}

int rm_device_export(const struct rm_device *device, uint32_t object)
{
	int fd = rm_client_open(RM_CONTROL_NODE), ret;

	if (fd < 0)
		return fd;
	ret = rm_device_export_to(device, object, fd);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

void rm_device_free(const struct rm_device *device, uint32_t object)
{
	rm_client_free(device->client, device->handle, object);
}

/*
 * RM makes a device for exports with the first descriptor of the machine, and destroys that device
 * with the last descriptor: half a millisecond each (H200, driver 580; rmobjexportimport.c).  The
 * anchor is a descriptor that stays, of a page: other exports then take 12 us.
 */
static int rm_device_set_anchor(struct rm_device *device)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t object;
	int ret;

	if (page == MAP_FAILED)
		return log_errno(errno, "no page: %m");
	ret = rm_device_pin(device, page, size, &object);
	if (!ret) {
		ret = rm_device_export(device, object);
		rm_device_free(device, object);
	}
	munmap(page, size);
	return ret < 0 ? ret : descriptor_own(&device->anchor, ret);
}

static int rm_device_find_minor(const struct rm_client *client, uint32_t gpu, uint32_t *minor)
{
	struct rm_card *cards = calloc(RM_CARDS, sizeof(*cards));
	int ret;

	if (!cards)
		return log_errno(ENOMEM, "no memory for a list of GPUs");
	ret = rm_ioctl(client->control.fd, RM_CARD_INFO, cards, "the list of GPUs");
	for (int i = 0; !ret && i < RM_CARDS; i++) {
		if (!cards[i].is_valid || cards[i].gpu != gpu)
			continue;
		*minor = cards[i].minor;
		free(cards);
		return 0;
	}
	free(cards);
	return ret ? ret : log_errno(EOPNOTSUPP, "NVIDIA's driver does not list the GPU %#x", gpu);
}

static int rm_device_open_node(struct rm_device *device, uint32_t gpu)
{
	char path[sizeof(RM_DEVICE_NODE) + 10];
	int32_t control = device->client->control.fd;
	uint32_t minor = 0;
	int ret = rm_device_find_minor(device->client, gpu, &minor);

	if (ret)
		return ret;
	snprintf(path, sizeof(path), RM_DEVICE_NODE, minor);
	ret = rm_client_open(path);
	if (ret < 0)
		return ret;
	ret = descriptor_own(&device->node, ret);
	return ret ? ret
		   : rm_ioctl(device->node.fd, RM_REGISTER_FD, &control,
			      "the registration of a device node with the control node");
}

/* The UUID of a MIG instance is no GPU's: RM finds none. */
static int rm_device_identify(const struct rm_client *client, const unsigned char *uuid,
			      struct rm_uuid_info *info)
{
	*info = (struct rm_uuid_info){ .flags = RM_UUID_BINARY };
	memcpy(info->uuid, uuid, RM_UUID_SIZE);
	return rm_client_control(
		client, RM_GET_UUID_INFO, info, sizeof(*info),
		"the UUID of a device (a MIG instance has a UUID that is no GPU's)");
}

static int rm_device_allocate(struct rm_device *device, uint32_t instance)
{
	const struct rm_device_parameters parameters = { .instance = instance };

	return rm_client_allocate(device->client, device->client->handle, RM_CLASS_DEVICE,
				  &parameters, "a device", &device->handle);
}

static int rm_device_set_up(struct rm_device *device)
{
	struct rm_uuid_info info;
	int ret = rm_device_identify(device->client, device->uuid, &info);

	if (!ret)
		ret = rm_device_open_node(device, info.gpu);
	if (!ret)
		ret = rm_device_allocate(device, info.device_instance);
	return ret ? ret : rm_device_set_anchor(device);
}

static void rm_device_destroy(struct rm_device *device)
{
	if (device->handle)
		rm_client_free(device->client, device->client->handle, device->handle);
	descriptor_own_close(&device->anchor);
	descriptor_own_close(&device->node);
	free(device);
}

static int rm_device_create(struct rm_client *client, const unsigned char *uuid,
			    struct rm_device **out)
{
	struct rm_device *device = calloc(1, sizeof(*device));
	int ret;

	if (!device)
		return log_errno(ENOMEM, "no memory for a device");
	device->client = client;
	device->node.fd = device->anchor.fd = -1;
	memcpy(device->uuid, uuid, RM_UUID_SIZE);
	ret = rm_device_set_up(device);
	if (ret) {
		rm_device_destroy(device);
		return ret;
	}
	*out = device;
	return 0;
}

/* A device whose node the program has closed is found no more.  The anchor's loss is harmless. */
static struct rm_device *rm_device_find(struct rm_client *client, const unsigned char *uuid)
{
	struct rm_device *d = client->devices;

	while (d && (memcmp(d->uuid, uuid, RM_UUID_SIZE) || !descriptor_is_own(&d->node)))
		d = d->next;
	return d;
}

/*
 * Releases before 575, and all releases in a guest with a vGPU, give a client one device of a GPU, and
 * refuse a second (device.c, _deviceInit(): status 0x1a).  So a device goes whose node the program has
 * closed.  The anchor stays: the number may be another file's.
 */
static void rm_device_retire(struct rm_client *client, const unsigned char *uuid)
{
	for (struct rm_device *d = client->devices; d; d = d->next) {
		if (memcmp(d->uuid, uuid, RM_UUID_SIZE) || d->is_retired)
			continue;
		rm_client_free(client, client->handle, d->handle);
		d->is_retired = true;
	}
}

static int rm_device_find_or_make(const unsigned char *uuid, struct rm_device **out)
{
	struct rm_client *client;
	int ret = rm_client_get(&client);

	if (ret)
		return ret;
	*out = rm_device_find(client, uuid);
	if (*out)
		return 0;
	rm_device_retire(client, uuid);
	ret = rm_device_create(client, uuid, out);
	if (ret)
		return ret;
	(*out)->next = client->devices;
	client->devices = *out;
	return 0;
}

/*
 * For the same reason one thread makes a device, and others wait for the thread.  The lock is held
 * across ioctls of RM, about a millisecond on a GPU that runs; RM calls nobody back.
 */
LOCK_DEFINE(rm_device_lock, LOCK_LAST); /* the client, and its list of devices */

int rm_device_get(const unsigned char uuid[RM_UUID_SIZE], struct rm_device **out)
{
	struct rm_device *device;
	int ret;

	lock_acquire(&rm_device_lock);
	ret = rm_device_find_or_make(uuid, &device);
	lock_release(&rm_device_lock);
	if (!ret)
		*out = device;
	return ret;
}
