/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way from the process of a test to the runner: a pipe that carries messages and nothing else.
 * Standard output is a second pipe, so a driver that prints changes no result.
 */
#ifndef TESTS_SPEC_CHANNEL_H
#define TESTS_SPEC_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

enum message_kind {
	MESSAGE_PLATFORM, /* the name of the platform under test */
	MESSAGE_ABOUT,	  /* a line about platform, device and driver */
	MESSAGE_NOTHING,  /* why nothing can be tested; value: enum nothing */
	MESSAGE_BEGIN,	  /* a test begins */
	MESSAGE_NOTE,	  /* a line that a test prints */
	MESSAGE_RESULT, /* value: enum test_result; the failed check, or why the test is skipped */
	MESSAGE_CALL,	/* OpenCL's last call before the failed check */
	MESSAGE_DATA,	/* value: bits of enum data */
	MESSAGE_END,	/* after OpenCL's last call */
};

enum nothing {
	NOTHING_TO_TEST, /* no platform has the extension */
	NOTHING_NAMED,	 /* no platform has the name and the device of the command line */
	NOTHING_OPENED,	 /* OpenCL's library cannot be used */
};

/* Of a failed test. */
enum data {
	DATA_IS_WRONG = 1, /* a check that the driver's own buffers may fail as well */
	DATA_IS_COMPARABLE =
		2, /* the driver's own buffers hold the bytes that imports would hold */
};

/* Of a size that a pipe takes and gives as a whole. */
struct message {
	uint32_t magic;
	uint16_t kind, value;
	char text[504];
};
_Static_assert(sizeof(struct message) == 512, "pipes are full and empty at whole messages");

/* Makes @fd the calling process's way to the runner. */
void channel_use(int fd);

/* Sends a message; the rest of a long text is cut off.  Any thread may send. */
void channel_send(enum message_kind kind, int value, const char *text);

bool channel_is_message(const struct message *message);

#endif /* TESTS_SPEC_CHANNEL_H */
