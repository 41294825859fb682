/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of queue_bracket.h share. */
#ifndef ICD_ACCESS_QUEUE_BRACKET_STATE_H
#define ICD_ACCESS_QUEUE_BRACKET_STATE_H

#include <pthread.h>

#include "icd/access/queue_bracket.h"
#include "icd/objects/handle_table.h"
#include "util/idle.h"

struct queue_bracket {
	struct handle_record record;
	cl_command_queue queue;
	pthread_mutex_t mutex; /* all below; taken before other locks */
	struct bracket *open;
	bool fresh; /* a kernel came since the last tick */
	bool entered; /* the mutex's owner is in the driver, with the bracket or a kernel that joins */
	bool close_left; /* the bracket is to be closed when the owner leaves the driver */
};

extern struct handle_table queue_bracket_table; /* cl_command_queue -> struct queue_bracket */

extern struct idle_watcher queue_bracket_watcher; /* closes the brackets of idle queues */

/* A reference to the record of @queue, or NULL. */
struct queue_bracket *queue_bracket_get(cl_command_queue queue);
void queue_bracket_put(struct queue_bracket *q);

/* With the queue's mutex: closes the bracket, if open. */
void queue_bracket_close_locked(struct queue_bracket *q);

#endif /* ICD_ACCESS_QUEUE_BRACKET_STATE_H */
