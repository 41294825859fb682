/* SPDX-License-Identifier: Apache-2.0 */
/* Which network interfaces are devices, and by which of their addresses. */
#include "nccl/libfabric/interface.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PATH_SIZE 128
#define DEFAULT_SPEED 10000 /* Mbit/s, if the system does not say */

/*
 * NCCL_SOCKET_IFNAME's syntax: beginnings of names, with commas; ^ before the list excludes, = before
 * the list means whole names.
 */
static bool interface_is_listed(const char *list, const char *name)
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

const char *fabric_interface_list(void)
{
	const char *list = getenv("CLIMPORT_NET_IFNAME");

	if (!list || !*list)
		list = getenv("NCCL_SOCKET_IFNAME");
	return list && *list ? list : NULL;
}

bool fabric_interface_is_wanted(const struct fi_info *info, const char *list)
{
	const char *name = info->domain_attr->name;

	/* The list names network interfaces; domains of verbs are adapters. */
	if (strcmp(info->fabric_attr->prov_name, "tcp") != 0)
		return true;
	return interface_is_listed(list ? list : "^lo,docker", name);
}

static bool interface_info_is_ipv4(const struct fi_info *info)
{
	const struct sockaddr *address = info->src_addr;

	return address && address->sa_family == AF_INET;
}

static bool interface_info_is_link_local(const struct fi_info *info)
{
	const struct sockaddr_in6 *address = info->src_addr;

	return address && address->sin6_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr);
}

static bool interface_info_is_ipv6(const struct fi_info *info)
{
	const struct sockaddr *address = info->src_addr;

	return address && address->sa_family == AF_INET6 && !interface_info_is_link_local(info);
}

/* The addresses of an interface, the best first: a link-local address crosses no router. */
bool (*const fabric_families[FABRIC_FAMILIES])(const struct fi_info *) = {
	interface_info_is_ipv4,
	interface_info_is_ipv6,
	interface_info_is_link_local,
};

int fabric_interface_speed(const char *name)
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
