/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that climport keeps.
 *
 * A program may close descriptors that the program does not know (daemons close all), and open
 * another file at the number.  climport identifies the file of each kept descriptor, and looks
 * again before each use and before close().  A process may also have no descriptor left:
 * descriptors that are kept for exports to come are then given up for the descriptors that are
 * needed now.
 */
#ifndef UTIL_DESCRIPTOR_H
#define UTIL_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/shared.h"

/* A duplicate, close-on-exec and above the standard descriptors; or a negative errno, logged. */
int descriptor_duplicate(int fd);

/*
 * The file of a descriptor.  A file that was opened twice, and all eventfds, have one identity.
 */
struct descriptor_id {
	dev_t device;
	ino_t inode;
	dev_t node; /* of a device node: the device */
};

/* 0, or -EBADF, logged. */
int descriptor_identify(int fd, struct descriptor_id *id);

bool descriptor_is(int fd, const struct descriptor_id *id);

/* Closes @fd, unless the number is another file's by now. */
void descriptor_close(int fd, const struct descriptor_id *id);

/* EMFILE or ENFILE if no descriptor can be made, else 0.  For drivers with other error codes. */
int descriptor_errno(void);

/* @give_up closes @count kept descriptors; false: there are none.  One function for the process. */
typedef bool (*descriptor_give_up_fn)(uint32_t count);
void descriptor_on_shortage(descriptor_give_up_fn give_up);

/*
 *	struct descriptor_retry retry = { 0 };
 *
 *	do
 *		ret = make_descriptor();
 *	while (descriptor_retry(&retry, ret));
 *
 * True if @err says that there was no descriptor, and kept descriptors have been closed.
 */
struct descriptor_retry {
	uint32_t closed; /* by the last try */
};

bool descriptor_retry(struct descriptor_retry *retry, int err);

#endif
