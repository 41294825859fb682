/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/choice.h"
#include "nccl/libfabric/handshake.h"
#include "nccl/libfabric/interface.h"
#include "nccl/log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_DEVICES 16
#define PATH_SIZE 128
#define CONNECTION_DESCRIPTORS 6 /* of an end over tcp, by default, and a part of a listener's */
#define MAX_THREADS (FABRIC_MAX_LANES - 1)

static struct fabric_device *device_list[MAX_DEVICES];
static int device_count;

/* The best first. */
static const char *const device_providers[] = { "verbs", "tcp" };

/* The process that has used verbs first: messages over verbs from its children would never arrive. */
static pid_t device_verbs_user;

static bool device_provider_is_wanted(const char *provider)
{
	const char *wanted = choice_get("CLIMPORT_NET_PROVIDER");

	if (!strcmp(provider, "verbs") && device_verbs_user && device_verbs_user != getpid())
		return false;
	return !wanted || !strcmp(wanted, provider);
}

static bool device_is_tcp(const struct fabric_device *device)
{
	return !strcmp(device->info->fabric_attr->prov_name, "tcp");
}

static bool device_is_known(const struct fi_info *info)
{
	for (int i = 0; i < device_count; i++)
		if (!strcmp(device_list[i]->info->domain_attr->name, info->domain_attr->name))
			return true;
	return false;
}

/* Over tcp each rail has a socket at each end. */
static int device_max_connections(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT_MAX)
		return 0;
	return limit.rlim_cur > CONNECTION_DESCRIPTORS
		       ? (int)(limit.rlim_cur / CONNECTION_DESCRIPTORS)
		       : 1;
}

static void device_describe(struct fabric_device *device)
{
	const char *class = device_is_tcp(device) ? "net" : "infiniband";
	char path[PATH_SIZE];

	snprintf(device->name, sizeof(device->name), "%s", device->info->domain_attr->name);
	snprintf(path, sizeof(path), "/sys/class/%s/%s/device", class, device->name);
	device->pci_path = realpath(path, NULL);
	device->properties = (struct transport_device){
		.name = device->name,
		.pci_path = device->pci_path,
		.guid = (uint64_t)device->number + 1,
		.speed = fabric_interface_speed(device->name),
		.port = 1,
		.max_connections = device_is_tcp(device) ? device_max_connections() : 0,
		.max_message = device->info->ep_attr->max_msg_size,
		.takes_dmabufs = fabric_device_needs_mappings(device) &&
				 fabric_library.version() >= FI_VERSION(1, 20),
	};
	if (device->info->nic && device->info->nic->link_attr &&
	    device->info->nic->link_attr->speed)
		device->properties.speed = (int)(device->info->nic->link_attr->speed / 1000000);
}

/*
 * A provider copies a message that is small enough for an injection by the processor, which cannot
 * read GPU memory.
 */
void fabric_no_inject(struct fi_info *info)
{
	info->tx_attr->inject_size = 0;
}

static int device_add(const struct fi_info *info)
{
	struct fabric_device *device = calloc(1, sizeof(*device));
	int err;

	if (!device)
		return -ENOMEM;
	device->info = fabric_library.dupinfo(info);
	if (!device->info) {
		free(device);
		return -ENOMEM;
	}
	err = fabric_library.fabric(device->info->fabric_attr, &device->fabric, NULL);
	if (err) {
		fabric_library.freeinfo(device->info);
		free(device);
		return err;
	}
	if (!device_is_tcp(device))
		device_verbs_user = getpid();
	device->number = device_count;
	pthread_mutex_init(&device->lock, NULL);
	pthread_mutex_init(&device->flush_lock, NULL);
	pthread_mutex_init(&device->eq_lock, NULL);
	device_describe(device);
	net_info("device %d: %s by %s", device->number, device->name,
		 device->info->fabric_attr->prov_name);
	device_list[device_count++] = device;
	return 0;
}

static struct fi_info *device_hints(const char *provider)
{
	struct fi_info *hints = fabric_library.dupinfo(NULL);

	if (!hints)
		return NULL;
	/* Over verbs a flush reads. */
	hints->caps = strcmp(provider, "verbs") ? FI_MSG : FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	/* freeinfo() frees the name. */
	hints->fabric_attr->prov_name = strdup(provider);
	if (hints->fabric_attr->prov_name)
		return hints;
	fabric_library.freeinfo(hints);
	return NULL;
}

/* -ENOMEM; a device that fails otherwise is left out, in every process alike. */
static int device_add_all(const struct fi_info *list, const char *interfaces,
			  bool (*is_of)(const struct fi_info *))
{
	int err = 0;

	for (const struct fi_info *info = list;
	     info && device_count < MAX_DEVICES && err != -ENOMEM; info = info->next)
		if (is_of(info) && fabric_interface_is_wanted(info, interfaces) &&
		    !device_is_known(info))
			err = device_add(info);
	return err == -ENOMEM ? err : 0;
}

static int device_add_families(const struct fi_info *list)
{
	const char *interfaces = fabric_interface_list();
	int err = 0;

	for (size_t i = 0; i < FABRIC_FAMILIES && !err; i++)
		err = device_add_all(list, interfaces, fabric_families[i]);
	/* A machine without a network has its loopback. */
	if (!err && !device_count && !interfaces)
		err = device_add_all(list, "lo", fabric_families[0]);
	return err;
}

/* 0, also if there are none, or -ENOMEM. */
static int device_find_all(const char *provider)
{
	struct fi_info *hints = device_hints(provider);
	struct fi_info *list = NULL;
	int err = 0;

	if (!hints)
		return -ENOMEM;
	if (!fabric_library.getinfo(FABRIC_API, NULL, NULL, 0, hints, &list)) {
		err = device_add_families(list);
		fabric_library.freeinfo(list);
	}
	fabric_library.freeinfo(hints);
	return err;
}

int fabric_open(void)
{
	int err = fabric_library_load();

	if (err)
		return err;
	for (size_t i = 0;
	     i < sizeof(device_providers) / sizeof(device_providers[0]) && !device_count && !err;
	     i++)
		if (device_provider_is_wanted(device_providers[i]))
			err = device_find_all(device_providers[i]);
	if (err) {
		fabric_close();
		return err;
	}
	return device_count ? 0 : -ENODEV;
}

static bool device_any_has_users(void)
{
	for (int i = 0; i < device_count; i++) {
		if (!device_list[i]->users)
			continue;
		net_info("device %s is closed with %d users", device_list[i]->name,
			 device_list[i]->users);
		return true;
	}
	return false;
}

/*
 * If the core has left a connection open, all devices stay until a later close: the next open gives
 * them the same numbers, which other processes know.
 */
void fabric_close(void)
{
	for (int i = 0; i < device_count; i++)
		fabric_flush_close(device_list[i]);
	if (device_any_has_users())
		return;
	while (device_count) {
		struct fabric_device *device = device_list[--device_count];

		fi_close(&device->fabric->fid);
		fabric_library.freeinfo(device->info);
		free(device->pci_path);
		pthread_mutex_destroy(&device->eq_lock);
		pthread_mutex_destroy(&device->flush_lock);
		pthread_mutex_destroy(&device->lock);
		free(device);
	}
}

/* What the parent has open stays as it is, unreachable: no call may touch a lane of the parent. */
void fabric_forget(void)
{
	device_count = 0;
}

bool fabric_device_is_own(const struct fabric_device *device)
{
	return device->number < device_count && device_list[device->number] == device;
}

int fabric_device_count(void)
{
	return device_count;
}

struct fabric_device *fabric_device_at(int number)
{
	return number >= 0 && number < device_count ? device_list[number] : NULL;
}

bool fabric_device_needs_mappings(const struct fabric_device *device)
{
	return device->info->domain_attr->mr_mode & FI_MR_LOCAL;
}

bool fabric_device_can_read(const struct fabric_device *device)
{
	return device->info->caps & FI_RMA;
}

/* Over verbs the adapter moves the data, and more domains would mean more registrations. */
static unsigned int device_threads(const struct fabric_device *device)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t threads = processors < 8 ? 1 : (size_t)processors / 4;

	if (!device_is_tcp(device))
		return 0;
	if (threads > 8)
		threads = 8;
	return (unsigned int)fabric_setting("CLIMPORT_NET_THREADS", threads, 0, MAX_THREADS);
}

static void device_close_lanes(struct fabric_device *device)
{
	while (device->lane_count)
		fabric_lane_close(&device->lanes[--device->lane_count]);
	fabric_events_close(device);
}

static int device_open_lanes(struct fabric_device *device)
{
	unsigned int count = 1 + device_threads(device);
	int err = fabric_events_open(device);

	while (!err && device->lane_count < count) {
		err = fabric_lane_open(&device->lanes[device->lane_count], device,
				       device->lane_count > 0);
		if (!err)
			device->lane_count++;
	}
	if (err)
		device_close_lanes(device);
	return err;
}

int fabric_device_get(struct fabric_device *device)
{
	int err = 0;

	pthread_mutex_lock(&device->lock);
	if (!device->users)
		err = device_open_lanes(device);
	if (!err)
		device->users++;
	pthread_mutex_unlock(&device->lock);
	return err;
}

void fabric_device_put(struct fabric_device *device)
{
	pthread_mutex_lock(&device->lock);
	if (!--device->users)
		device_close_lanes(device);
	pthread_mutex_unlock(&device->lock);
}

struct fabric_lane *fabric_device_next_lane(struct fabric_device *device)
{
	unsigned int threads = device->lane_count - 1;

	if (!threads)
		return &device->lanes[0];
	return &device->lanes[1 + atomic_fetch_add(&device->next_lane, 1) % threads];
}
