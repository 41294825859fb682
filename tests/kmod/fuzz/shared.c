/* SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct fuzz_shared shared;

static void fuzz_open_all(atomic_int *places, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		atomic_store(&places[i], open(path, O_RDWR | O_CLOEXEC));
}

static void fuzz_clear_all(atomic_int *places, size_t count)
{
	for (size_t i = 0; i < count; i++)
		atomic_store(&places[i], -1);
}

void fuzz_shared_open(void)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, shared.sockets))
		_exit(2);
	fuzz_open_all(shared.contexts, COUNT_OF(shared.contexts), "/dev/gdmabuf");
	fuzz_open_all(shared.importers, COUNT_OF(shared.importers), "/dev/gdmabuf_importer");
	fuzz_open_all(shared.gpus, COUNT_OF(shared.gpus), "/dev/gdmabuf_mock");
	fuzz_clear_all(shared.buffers, COUNT_OF(shared.buffers));
}

void fuzz_replace_fd(atomic_int *place, int fd)
{
	int old = atomic_exchange(place, fd);

	if (old >= 0)
		close(old);
}

static void fuzz_close_all(atomic_int *places, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fuzz_replace_fd(&places[i], -1);
}

void fuzz_shared_close(void)
{
	fuzz_close_all(shared.buffers, COUNT_OF(shared.buffers));
	fuzz_close_all(shared.importers, COUNT_OF(shared.importers));
	fuzz_close_all(shared.contexts, COUNT_OF(shared.contexts));
	fuzz_close_all(shared.gpus, COUNT_OF(shared.gpus));
	close(shared.sockets[0]);
	close(shared.sockets[1]);
}

int fuzz_any_fd(void)
{
	switch (fuzz_any(12)) {
	case 0:
		return ANY_OF(shared.contexts);
	case 1:
		return ANY_OF(shared.importers);
	case 2:
		return (int)fuzz_any_edge();
	}
	return ANY_OF(shared.buffers);
}

void fuzz_open_close(void)
{
	int fd;

	switch (fuzz_any(8)) {
	case 0:
		fuzz_replace_fd(PLACE_IN(shared.contexts),
				open("/dev/gdmabuf", O_RDWR | O_CLOEXEC));
		break;
	case 1:
		fuzz_replace_fd(PLACE_IN(shared.importers),
				open("/dev/gdmabuf_importer", O_RDWR | O_CLOEXEC));
		break;
	case 2:
		if (!fuzz_any(20))
			fuzz_replace_fd(PLACE_IN(shared.gpus),
					open("/dev/gdmabuf_mock", O_RDWR | O_CLOEXEC));
		break;
	case 3:
		fd = dup(ANY_OF(shared.buffers));
		fuzz_replace_fd(PLACE_IN(shared.buffers), fd);
		break;
	default:
		fuzz_replace_fd(PLACE_IN(shared.buffers), -1);
	}
}

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* A message of one byte, with room for a descriptor. */
struct fd_message {
	char byte;
	struct iovec data;
	struct msghdr header;
	union control control;
};

static void fuzz_message_init(struct fd_message *m)
{
	memset(m, 0, sizeof(*m));
	m->data = (struct iovec){ &m->byte, 1 };
	m->header = (struct msghdr){
		.msg_iov = &m->data,
		.msg_iovlen = 1,
		.msg_control = &m->control,
		.msg_controllen = sizeof(m->control),
	};
}

static void fuzz_send_fd(void)
{
	struct fd_message m;
	int fd = fuzz_any_fd();

	fuzz_message_init(&m);
	m.control.header.cmsg_level = SOL_SOCKET;
	m.control.header.cmsg_type = SCM_RIGHTS;
	m.control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&m.control.header), &fd, sizeof(fd));
	sendmsg(shared.sockets[0], &m.header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void fuzz_receive_fd(void)
{
	struct fd_message m;
	int fd;

	fuzz_message_init(&m);
	if (recvmsg(shared.sockets[1], &m.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1 ||
	    m.control.header.cmsg_len != CMSG_LEN(sizeof(int)))
		return;
	memcpy(&fd, CMSG_DATA(&m.control.header), sizeof(fd));
	fuzz_replace_fd(fuzz_any(4)   ? PLACE_IN(shared.buffers)
			: fuzz_any(2) ? PLACE_IN(shared.contexts)
				      : PLACE_IN(shared.importers),
			fd);
}

void fuzz_pass_on(void)
{
	if (fuzz_any(2))
		fuzz_send_fd();
	else
		fuzz_receive_fd();
}
