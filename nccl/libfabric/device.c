/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/libfabric/handshake.h"
#include "nccl/log.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_DEVICES 16
#define PATH_SIZE 128
#define CONNECTION_DESCRIPTORS 6 /* of an end over tcp, by default, and a part of a listener's */
#define DEFAULT_SPEED 10000	 /* Mbit/s, if the system does not say */
#define MAX_THREADS (FABRIC_MAX_LANES - 1)

static struct fabric_device *device_list[MAX_DEVICES];
static int device_count;

/* The best first. */
static const char *const device_providers[] = { "verbs", "tcp" };

/* The process that has used verbs first: messages over verbs from its children would never arrive. */
static pid_t device_verbs_user;

static bool device_provider_is_wanted(const char *provider)
{
	const char *wanted = getenv("CLIMPORT_NET_PROVIDER");

	if (!strcmp(provider, "verbs") && device_verbs_user && device_verbs_user != getpid())
		return false;
	return !wanted || !*wanted || !strcmp(wanted, provider);
}

static bool device_is_tcp(const struct fabric_device *device)
{
	return !strcmp(device->info->fabric_attr->prov_name, "tcp");
}

/*
 * NCCL_SOCKET_IFNAME's syntax: beginnings of names, with commas; ^ before the list excludes, = before
 * the list means whole names.
 */
static bool device_interface_is_listed(const char *list, const char *name)
{
	bool excludes = *list == '^', found = false;
	size_t length;
	bool whole;

	list += excludes;
	whole = *list == '=';
	list += whole;
	while (*list && !found) {
		length = strcspn(list, ",");
		found = length && !strncmp(list, name, length) && (!whole || !name[length]);
		list += length;
		list += *list == ',';
	}
	return found != excludes;
}

static const char *device_interface_list(void)
{
	const char *list = getenv("CLIMPORT_NET_IFNAME");

	if (!list || !*list)
		list = getenv("NCCL_SOCKET_IFNAME");
	return list && *list ? list : NULL;
}

static bool device_interface_is_wanted(const struct fi_info *info, const char *list)
{
	const char *name = info->domain_attr->name;

	/* The list names network interfaces; domains of verbs are adapters. */
	if (strcmp(info->fabric_attr->prov_name, "tcp") != 0)
		return true;
	return device_interface_is_listed(list ? list : "^lo,docker", name);
}

static bool device_is_known(const struct fi_info *info)
{
	for (int i = 0; i < device_count; i++)
		if (!strcmp(device_list[i]->info->domain_attr->name, info->domain_attr->name))
			return true;
	return false;
}

static bool device_info_is_ipv4(const struct fi_info *info)
{
	const struct sockaddr *address = info->src_addr;

	return address && address->sa_family == AF_INET;
}

static bool device_info_is_link_local(const struct fi_info *info)
{
	const struct sockaddr_in6 *address = info->src_addr;

	return address && address->sin6_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr);
}

static bool device_info_is_ipv6(const struct fi_info *info)
{
	const struct sockaddr *address = info->src_addr;

	return address && address->sa_family == AF_INET6 && !device_info_is_link_local(info);
}

/* The addresses of an interface, the best first: a link-local address crosses no router. */
static bool (*const device_families[])(const struct fi_info *) = {
	device_info_is_ipv4,
	device_info_is_ipv6,
	device_info_is_link_local,
};

static int device_interface_speed(const char *name)
{
	char path[PATH_SIZE];
	FILE *file;
	int speed = 0;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	file = fopen(path, "re");
	if (file) {
		if (fscanf(file, "%d", &speed) != 1) // NOLINT(cert-err34-c)
			speed = 0;
		fclose(file);
	}
	return speed > 0 ? speed : DEFAULT_SPEED;
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
		.speed = device_interface_speed(device->name),
		.port = 1,
		.max_connections = device_is_tcp(device) ? device_max_connections() : 0,
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

static void device_add_all(const struct fi_info *list, const char *interfaces,
			   bool (*is_of)(const struct fi_info *))
{
	for (const struct fi_info *info = list; info && device_count < MAX_DEVICES;
	     info = info->next)
		if (is_of(info) && device_interface_is_wanted(info, interfaces) &&
		    !device_is_known(info))
			device_add(info);
}

static void device_find_all(const char *provider)
{
	const char *interfaces = device_interface_list();
	struct fi_info *hints = device_hints(provider);
	struct fi_info *list = NULL;

	if (!hints)
		return;
	if (!fabric_library.getinfo(FABRIC_API, NULL, NULL, 0, hints, &list)) {
		for (size_t i = 0; i < sizeof(device_families) / sizeof(device_families[0]); i++)
			device_add_all(list, interfaces, device_families[i]);
		/* A machine without a network has its loopback. */
		if (!device_count && !interfaces)
			device_add_all(list, "lo", device_info_is_ipv4);
		fabric_library.freeinfo(list);
	}
	fabric_library.freeinfo(hints);
}

int fabric_open(void)
{
	int err = fabric_library_load();

	if (err)
		return err;
	for (size_t i = 0;
	     i < sizeof(device_providers) / sizeof(device_providers[0]) && !device_count; i++)
		if (device_provider_is_wanted(device_providers[i]))
			device_find_all(device_providers[i]);
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
