/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late puts.  The application's release of an import ends the import inside of the driver's release;
 * or the driver ends the import later, on a thread of its own, when the last command is done.  A put
 * that has not come when the driver's release returns is *late*.
 *
 * A thread that is to find memory without users (fork(), climport_drop_all()) waits a moment for late
 * puts.  The thread does not wait for a put before the put is late: in the application's destructor
 * callback the put may be the waiting thread's own.  Nor does the thread wait for ever: a kernel may
 * run for minutes.
 */
#ifndef IMPORT_OPAQUE_FD_LATE_PUT_H
#define IMPORT_OPAQUE_FD_LATE_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/list.h"

/* Zeroed at first, and at one address from late_put_announce() to late_put_end(). */
struct late_put {
	struct list link; /* late_put.c's, as all below */
	const void *of;
	uint64_t number;  /* 0: not announced */
	uint32_t process; /* fork_generation(): whose put */
	size_t size;	  /* bytes of the import */
	bool is_late;
	long waited_us; /* the longest wait for the put in vain */
};

/*
 * The put is to come.  @of: for late_put_wait().  Returns a number for late_put_begin().  Further
 * calls return the same number.
 */
uint64_t late_put_announce(struct late_put *put, const void *of, size_t size);

/* The driver's release has returned: the put is late, unless the put has come.  0: nothing. */
void late_put_begin(uint64_t number);

/* The put has come, announced or not. */
void late_put_end(struct late_put *put);

struct late_put_patience {
	long most_us;
	size_t bytes_per_us; /* of the import: less patience with a small import; 0: not so */
};

/*
 * Waits for the late puts of @of, as long as @patience has it for one of them.  A put that has been
 * waited for in vain is not waited for again, but by a greater patience.
 */
void late_put_wait(const void *of, const struct late_put_patience *patience);

#endif
