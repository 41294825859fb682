/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/libfabric/half_open.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void half_open_begin(struct half_open *half_open, const void *address, size_t address_size,
		     size_t request_size)
{
	half_open->descriptors = opendir("/proc/self/fd");
	half_open->address = address;
	half_open->address_size = address_size;
	half_open->request_size = request_size;
}

static bool half_open_is_listeners(const struct half_open *half_open, int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	return !getsockname(fd, (struct sockaddr *)&address, &size) &&
	       size == half_open->address_size && !memcmp(&address, half_open->address, size);
}

static bool half_open_listens(int fd)
{
	int listens = 0;
	socklen_t size = sizeof(listens);

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) && listens;
}

/* False: as much as a request has come, or the system does not count (gVisor, which has no MSS either). */
static bool half_open_is(const struct half_open *half_open, int fd, struct half_open_socket *found)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) || !info.tcpi_snd_mss ||
	    info.tcpi_bytes_received >= half_open->request_size)
		return false;
	*found = (struct half_open_socket){ fd, info.tcpi_last_ack_recv };
	return true;
}

static size_t half_open_find(struct half_open *half_open, bool ends)
{
	const struct dirent *entry;
	size_t count = 0;

	if (!half_open->descriptors)
		return 0;
	rewinddir(half_open->descriptors);
	while (count < HALF_OPEN_FOUND && (entry = readdir(half_open->descriptors))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (*entry->d_name == '.' || !half_open_is_listeners(half_open, fd))
			continue;
		if (!half_open_listens(fd))
			count += half_open_is(half_open, fd, &half_open->found[count]);
		else if (ends)
			shutdown(fd, SHUT_RDWR);
	}
	return count;
}

static int half_open_compare(const void *a, const void *b)
{
	const struct half_open_socket *one = a, *two = b;

	return (two->age_ms > one->age_ms) - (two->age_ms < one->age_ms);
}

static size_t half_open_shut(struct half_open *half_open, bool ends, size_t most)
{
	size_t count = half_open_find(half_open, ends), shut = 0;

	/* The oldest first. */
	qsort(half_open->found, count, sizeof(*half_open->found), half_open_compare);
	for (; count > most + shut; shut++)
		shutdown(half_open->found[shut].fd, SHUT_RDWR);
	return shut;
}

size_t half_open_limit(struct half_open *half_open, size_t most)
{
	return half_open_shut(half_open, false, most);
}

size_t half_open_end(struct half_open *half_open)
{
	return half_open_shut(half_open, true, 0);
}
