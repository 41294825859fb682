/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors where the process has none left: those that are kept for exports to come are given
 * up for those that are needed now.
 */
#ifndef UTIL_DESCRIPTOR_H
#define UTIL_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "import/shared.h"

/* A duplicate, close-on-exec and none of the standard ones; or a negative errno, logged. */
int descriptor_duplicate(int fd);

/*
 * Which file a descriptor is of.  Programs close descriptors that they do not know, daemons all of
 * them, and the number is then another file's: a descriptor that is kept is looked at before it is
 * used, or closed.  Files that are opened twice, and eventfds, are one file by this.
 */
struct descriptor_id {
	dev_t device;
	ino_t inode;
	dev_t node; /* of a device node: which device */
};

/* 0, or -EBADF, logged. */
int descriptor_identify(int fd, struct descriptor_id *id);

bool descriptor_is(int fd, const struct descriptor_id *id);

/* Closes @fd, unless it is another file's by now. */
void descriptor_close(int fd, const struct descriptor_id *id);

/* EMFILE or ENFILE if no descriptor can be made; 0 if one can.  For drivers that do not say. */
int descriptor_errno(void);

/*
 *	struct descriptor_retry retry = { 0 };
 *
 *	do
 *		ret = make_one();
 *	while (descriptor_retry(&retry, ret));
 *
 * True if @err says that there was no descriptor, and some that were kept have been closed.
 */
struct descriptor_retry {
	uint32_t closed; /* by the last try */
};

bool descriptor_retry(struct descriptor_retry *retry, int err);

#endif
