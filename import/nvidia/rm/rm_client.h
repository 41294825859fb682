/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of RM: an open control node, and the objects that RM keeps for it.
 *
 * A process has one client, made at the first use.  A child makes its own: RM would answer on the
 * inherited descriptor, for the parent's objects.  If the program closes the descriptor, the client
 * is gone with all of its objects, and the next use makes another.  A struct rm_client is never
 * freed, since threads may read it.
 */
#ifndef IMPORT_NVIDIA_RM_RM_CLIENT_H
#define IMPORT_NVIDIA_RM_RM_CLIENT_H

#include <stdatomic.h>
#include <stdint.h>

#include "import/nvidia/rm/rm_abi.h"
#include "util/descriptor.h"

struct rm_device;

struct rm_client {
	struct descriptor_own control;
	uint32_t handle;
	_Atomic uint32_t last;	   /* number of an object */
	struct rm_device *devices; /* rm_device.c's; grows at its head only */
	struct rm_client *before;  /* that this one replaced: kept reachable */
};

/* The process's client, for one thread at a time.  0 or a negative errno, logged. */
int rm_client_get(struct rm_client **client);

/*
 * A handle for a new object of memory.  After 2^31 objects handles come again: if an object has the
 * handle still, rm_result() is -EEXIST, and another handle is to be tried.
 */
uint32_t rm_client_new_handle(struct rm_client *client);

/* A new control node: -errno, logged. */
int rm_client_open(const char *node);

/* Below: 0, or a negative errno, logged with @what, a noun: the object or the act. */

/* ioctl(2), again while a signal interrupts.  The caller looks at the status. */
int rm_ioctl(int fd, unsigned long request, void *parameters, const char *what);

/* @object: the handle; where it is 0, RM chooses, and it is set on success. */
int rm_client_allocate(const struct rm_client *client, uint32_t parent, uint32_t class,
		       const void *parameters, const char *what, uint32_t *object);

int rm_client_control(const struct rm_client *client, uint32_t command, void *parameters,
		      uint32_t size, const char *what);

/* Failures are logged and forgotten: the client's end frees the object. */
void rm_client_free(const struct rm_client *client, uint32_t parent, uint32_t object);

/*
 * A status of RM as 0 or a negative errno, logged as "NVIDIA's resource manager refuses @what".
 * -EEXIST, not logged: an object has the handle.
 */
int rm_result(uint32_t status, const char *what);

#endif
