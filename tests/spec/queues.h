/* SPDX-License-Identifier: Apache-2.0 */
/* Command queues for the tests, released after the test. */
#ifndef TESTS_SPEC_QUEUES_H
#define TESTS_SPEC_QUEUES_H

#include "spec.h"

enum queue_kind { QUEUE_FIRST, QUEUE_SECOND, QUEUE_OUT_OF_ORDER, QUEUE_PROFILING, QUEUE_KINDS };

extern const char *const queue_names[QUEUE_KINDS];

/* spec.queue for QUEUE_FIRST, or a new queue; NULL if the device has no such queues. */
cl_command_queue queues_get(enum queue_kind kind);

/* A new queue of spec.device. */
cl_command_queue queues_create(cl_context context, cl_command_queue_properties properties);

/* Likewise of @device. */
cl_command_queue queues_create_on(cl_context context, cl_device_id device,
				  cl_command_queue_properties properties);

/* A user event, released after the test.  Commands behind the event wait for queues_open_gate(). */
cl_event queues_create_gate(void);
void queues_open_gate(cl_event gate);

/* Gives other threads a millisecond. */
void queues_rest(void);

#endif /* TESTS_SPEC_QUEUES_H */
