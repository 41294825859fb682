/* SPDX-License-Identifier: Apache-2.0 */
/* How a test ended, gathered from the messages and from the end of the process. */
#ifndef TESTS_SPEC_VERDICT_H
#define TESTS_SPEC_VERDICT_H

#include <stdbool.h>

#include "channel.h"
#include "harness.h"
#include "opencl.h"
#include "watch.h"

enum { DETAILS_SIZE = 16384 };

struct verdict {
	bool has_begun, has_result, has_ended;
	enum test_result result;
	enum test_result checked; /* without what the process did after the test */
	bool is_death; /* the process ended, or was killed, before all that a process does */
	struct watch_result end;
	int data;	     /* bits of enum data */
	char why[512];	     /* the failed check, the reason for a skip, or how the process died */
	char call[200];	     /* of OpenCL, before the failed check or the death */
	char last_call[200]; /* of a process that died */
	char notes[DETAILS_SIZE];  /* lines of the test */
	char output[DETAILS_SIZE]; /* lines of the driver */
};

void verdict_take_message(struct verdict *v, const struct message *message);
void verdict_take_output(struct verdict *v, const char *text, size_t length);

/*
 * The end of the process: a death if there is no result or no MESSAGE_END, or if the status is not 0.
 * A failed check stays a failed check.
 */
void verdict_take_end(struct verdict *v, const struct watch_result *end,
		      const struct opencl_note *note);

/*
 * Whether @plain, the same test on the driver's own buffers, ended like @v: the same error of OpenCL,
 * the same wrong bytes, or the same death in the same call.
 */
bool verdict_is_the_drivers(const struct verdict *v, const struct verdict *plain);

/* Whether the plain run could tell. */
bool verdict_may_be_the_drivers(const struct verdict *v);

/* The lines to print below the result. */
void verdict_describe(const struct verdict *v, char *text, size_t room);

#endif /* TESTS_SPEC_VERDICT_H */
