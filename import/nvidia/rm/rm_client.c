/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/rm/rm_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/log.h"

#define RM_HANDLES_MASK 0x7fffffffu

static const struct {
	uint32_t status;
	int error;
	const char *text;
} rm_statuses[] = {
	{ RM_GPU_IS_LOST, EIO, "the GPU is lost" },
	{ RM_INSUFFICIENT_RESOURCES, ENOMEM, "not enough resources" },
	{ RM_INSUFFICIENT_PERMISSIONS, EOPNOTSUPP, "no permission" },
	{ RM_INVALID_ADDRESS, EOPNOTSUPP, "the memory cannot be pinned" },
	{ RM_INVALID_ARGUMENT, EOPNOTSUPP, "invalid argument" },
	{ RM_INVALID_LIMIT, EOPNOTSUPP, "invalid size" },
	{ RM_NO_MEMORY, ENOMEM, "out of memory" },
	{ RM_NOT_SUPPORTED, EOPNOTSUPP, "not supported" },
	{ RM_OBJECT_NOT_FOUND, EOPNOTSUPP, "object not found" },
};

int rm_result(uint32_t status, const char *what)
{
	if (status == RM_OK)
		return 0;
	if (status == RM_HANDLE_IS_TAKEN)
		return -EEXIST;
	for (size_t i = 0; i < sizeof(rm_statuses) / sizeof(*rm_statuses); i++)
		if (rm_statuses[i].status == status)
			return log_errno(rm_statuses[i].error,
					 "NVIDIA's resource manager refuses %s: %s (status %#x)",
					 what, rm_statuses[i].text, status);
	return log_errno(EIO, "NVIDIA's resource manager refuses %s: status %#x", what, status);
}

/* Another layout of the ABI shows as an error of the ioctl, since the number holds the size. */
int rm_ioctl(int fd, unsigned long request, void *parameters, const char *what)
{
	int error;

	do
		error = ioctl(fd, request, parameters) ? errno : 0;
	while (error == EINTR);
	return error ? log_errno(error == ENOMEM ? ENOMEM : EOPNOTSUPP,
				 "%s: ioctl of NVIDIA's resource manager: %s", what,
				 log_strerror(error))
		     : 0;
}

int rm_client_allocate(const struct rm_client *client, uint32_t parent, uint32_t class,
		       const void *parameters, const char *what, uint32_t *object)
{
	struct rm_allocation allocation = {
		.client = client->handle,
		.parent = parent,
		.object = *object,
		.class = class,
		.parameters = (uintptr_t)parameters,
	};
	int ret = rm_ioctl(client->control.fd, RM_ALLOCATE, &allocation, what);

	if (!ret)
		ret = rm_result(allocation.status ? allocation.status : allocation.size, what);
	if (!ret)
		*object = allocation.object;
	return ret;
}

int rm_client_control(const struct rm_client *client, uint32_t command, void *parameters,
		      uint32_t size, const char *what)
{
	struct rm_control control = {
		.client = client->handle,
		.object = client->handle,
		.command = command,
		.parameters = (uintptr_t)parameters,
		.size = size,
	};
	int ret = rm_ioctl(client->control.fd, RM_CONTROL, &control, what);

	return ret ? ret : rm_result(control.status, what);
}

void rm_client_free(const struct rm_client *client, uint32_t parent, uint32_t object)
{
	struct rm_release release = {
		.client = client->handle,
		.parent = parent,
		.object = object,
	};

	if (!rm_ioctl(client->control.fd, RM_FREE, &release, "the end of an object"))
		rm_result(release.status, "the end of an object");
}

/* 0 means that RM chooses: from 0xc1d00000 on (resserv.h, rs_client.h). */
uint32_t rm_client_new_handle(struct rm_client *client)
{
	uint32_t last = atomic_fetch_add_explicit(&client->last, 1, memory_order_relaxed);

	return (last & RM_HANDLES_MASK) + 1;
}

int rm_client_open(const char *node)
{
	int fd, error;

	do {
		fd = open(node, O_RDWR | O_CLOEXEC);
		error = errno;
	} while (fd < 0 && error == EINTR);
	if (fd >= 0)
		return fd;
	if (error == EMFILE || error == ENFILE || error == ENOMEM)
		return log_errno(error, "%s: %s", node, log_strerror(error));
	return log_errno(EOPNOTSUPP, "%s: %s", node, log_strerror(error));
}

/*
 * Releases before 525 take references to pages (get_user_pages() in os-mlock.c of
 * open-gpu-kernel-modules).  After a fork() the program's next write to a page gives the program a
 * copy, and kernels see the old page.  Later releases use pin_user_pages().
 */
#define RM_RELEASE 525

/* Releases before 530 do not tell their number, and compare a number with theirs. */
static unsigned long rm_release(int control, const struct rm_version *told, const char *what)
{
	struct rm_version version = { .command = RM_VERSION_COMPARE, .text = "525." };
	int ret;

	if (told->text[0])
		return strtoul(told->text, NULL, 10);
	log_hold();
	ret = rm_ioctl(control, RM_VERSION, &version, what);
	log_resume(false);
	return ret ? 0 : RM_RELEASE;
}

static int rm_client_check_release(int control)
{
	static const char what[] = "the version of NVIDIA's driver";
	struct rm_version version = { .command = RM_VERSION_QUERY };
	int ret = rm_ioctl(control, RM_VERSION, &version, what);

	if (ret || rm_release(control, &version, what) >= RM_RELEASE)
		return ret;
	return log_errno(EOPNOTSUPP,
			 "releases of NVIDIA's driver before %d do not pin host memory: after a "
			 "fork() kernels would see old pages",
			 RM_RELEASE);
}

static void rm_client_destroy(struct rm_client *client)
{
	descriptor_own_close(&client->control);
	free(client);
}

static int rm_client_create(struct rm_client **out)
{
	struct rm_client *client = calloc(1, sizeof(*client));
	int fd, ret;

	if (!client)
		return log_errno(ENOMEM, "no memory for a client of NVIDIA's resource manager");
	fd = rm_client_open(RM_CONTROL_NODE);
	if (fd < 0) {
		free(client);
		return fd;
	}
	ret = descriptor_own(&client->control, fd);
	if (!ret)
		ret = rm_client_check_release(fd);
	if (!ret)
		ret = rm_client_allocate(client, 0, RM_CLASS_CLIENT, NULL, "a client",
					 &client->handle);
	if (ret) {
		rm_client_destroy(client);
		return ret;
	}
	*out = client;
	return 0;
}

int rm_client_get(struct rm_client **out)
{
	static struct rm_client *current;
	struct rm_client *made = NULL;
	int ret;

	if (!current || !descriptor_is_own(&current->control)) {
		ret = rm_client_create(&made);
		if (ret)
			return ret;
		made->before = current;
		current = made;
	}
	*out = current;
	return 0;
}
