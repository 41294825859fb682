/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers of a listener over tcp that have connected and not sent a whole request.
 *
 * libfabric keeps such a socket until the peer speaks or goes: if the peer does neither, for the life of
 * the process, whatever becomes of the listener (1.17; 2.1 uses freed memory).  libfabric tells of none.
 * So they are found among the descriptors of the process, as the sockets with the listener's address by
 * which less than a request has come.  Only the listener's own queue of events closes such a socket, and
 * only the thread that uses the listener reads that queue.  So a descriptor that was found stays what it
 * is until that thread reads; a socket that is shut is closed then.
 */
#ifndef NCCL_LIBFABRIC_HALF_OPEN_H
#define NCCL_LIBFABRIC_HALF_OPEN_H

#include <dirent.h>
#include <stddef.h>

#define HALF_OPEN_FOUND 512 /* at once; others are found the next time */

struct half_open_socket {
	int fd;
	unsigned int age_ms;
};

struct half_open {
	DIR *descriptors; /* of the process; open, because later there may be no descriptor left */
	const void *address; /* of the listener */
	size_t address_size;
	size_t request_size; /* who has sent as much is not half open */
	struct half_open_socket found[HALF_OPEN_FOUND];
};

/* Without /proc none are found.  @address stays the caller's. */
void half_open_begin(struct half_open *half_open, const void *address, size_t address_size,
		     size_t request_size);

/* Shuts all but the @most youngest.  How many were shut. */
size_t half_open_limit(struct half_open *half_open, size_t most);

/* Shuts the socket that listens, so that no more come, and all that are half open.  Likewise. */
size_t half_open_end(struct half_open *half_open);

#endif /* NCCL_LIBFABRIC_HALF_OPEN_H */
