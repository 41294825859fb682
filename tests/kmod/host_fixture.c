/* SPDX-License-Identifier: Apache-2.0 */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

long long total_settled(const char *counter)
{
	long long now = gdm_read_total(counter), before;

	do {
		before = now;
		usleep(100000); /* time: between two looks, at a counter that work items change */
		now = gdm_read_total(counter);
	} while (now != before);
	return now;
}

void raise_ipc_lock(int raised)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		_exit(98);
	data[0].effective &= ~(1U << CAP_IPC_LOCK);
	data[0].effective |= (unsigned int)raised << CAP_IPC_LOCK;
	if (syscall(SYS_capset, &header, data))
		_exit(98);
}

struct setup host_test_begin(int fill, uint32_t flags)
{
	struct setup s = { .ctx = gdm_open(), .p = pages_new(LENGTH, fill) };

	EXPECT_EQ(gdm_export_host(s.ctx, s.p, LENGTH, flags, &s.e), 0);
	return s;
}

void host_test_end(struct setup *s)
{
	close(s->e.fd);
	close(s->ctx);
	munmap(s->p, LENGTH);
}

void pin_and_pass(void *arg)
{
	const struct pinner *pinner = arg;
	unsigned char *p = pages_new(pinner->length, 1);
	int ctx = gdm_open(), err;
	struct gdm_export e;

	become_user(pinner->limit);
	err = gdm_export_host(ctx, p, pinner->length, 0, &e);
	if (err)
		_exit(err == -ENOMEM ? 1 : 2);
	send_fd(pinner->sockets[0], e.fd);
}

struct pinner pinner_new(size_t length, size_t limit)
{
	struct pinner pinner = { .length = length, .limit = limit };

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pinner.sockets), 0);
	return pinner;
}

void pinner_free(struct pinner *pinner)
{
	close(pinner->sockets[0]);
	close(pinner->sockets[1]);
}
