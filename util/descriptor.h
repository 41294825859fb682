/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that climport keeps.
 *
 * A program may close descriptors of climport's (daemons close all), and open a new file at the
 * number.  climport identifies the file of each kept descriptor, and looks again before each use and
 * before close().
 */
#ifndef UTIL_DESCRIPTOR_H
#define UTIL_DESCRIPTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/shared.h"

/* A duplicate, close-on-exec and above the standard descriptors; or a negative errno, logged. */
int descriptor_duplicate(int fd);

/*
 * The file of a descriptor.  A file has one identity, however often opened; all eventfds
 * have one identity, too.
 */
struct descriptor_id {
	dev_t device;
	ino_t inode;
	dev_t node; /* of a device node: the device */
};

/* 0, or -EBADF, logged. */
int descriptor_identify(int fd, struct descriptor_id *id);

bool descriptor_is(int fd, const struct descriptor_id *id);

/* Closes @fd, unless the number is a new file's by now. */
void descriptor_close(int fd, const struct descriptor_id *id);

/*
 * A descriptor of the process: neither a child uses the number, nor any thread after the program's
 * close().
 */
struct descriptor_own {
	int fd; /* -1: no descriptor */
	uint32_t process;
	int mark;	     /* of the open file */
	atomic_bool is_gone; /* seen to be closed: a later file at the number is another's */
	struct descriptor_id id;
};

/* Takes @fd over, and marks the open file.  0, or -EBADF, logged. */
int descriptor_own(struct descriptor_own *own, int fd);

/* Whether the process itself made the descriptor, and the program has not closed the descriptor. */
bool descriptor_is_own(struct descriptor_own *own);

/* Closes the descriptor, unless the number is a new file's by now. */
void descriptor_own_close(const struct descriptor_own *own);

/* EMFILE or ENFILE if no descriptor can be made, else 0.  For drivers with other error codes. */
int descriptor_errno(void);

/* The @part-th part of the descriptors that the process may have, but no more than @most. */
uint32_t descriptor_share(uint32_t part, uint32_t most);

#endif
