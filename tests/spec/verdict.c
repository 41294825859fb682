/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include "util/cl_names.h"

/* Adds a piece of text, and cuts off what has no room. */
static void verdict_append(char *to, size_t room, const char *text, size_t length)
{
	size_t used = strlen(to);

	for (size_t i = 0; i < length && used + 1 < room; i++)
		to[used++] = text[i] ? text[i] : '?';
	to[used] = 0;
}

void verdict_take_output(struct verdict *v, const char *text, size_t length)
{
	verdict_append(v->output, sizeof(v->output), text, length);
}

static void verdict_take_note(struct verdict *v, const char *text)
{
	verdict_append(v->notes, sizeof(v->notes), text, strlen(text));
	verdict_append(v->notes, sizeof(v->notes), "\n", 1);
}

void verdict_take_message(struct verdict *v, const struct message *message)
{
	switch ((enum message_kind)message->kind) {
	case MESSAGE_BEGIN:
		v->has_begun = true;
		break;
	case MESSAGE_NOTE:
		verdict_take_note(v, message->text);
		break;
	case MESSAGE_RESULT:
		v->has_result = true;
		v->result = v->checked = message->value;
		snprintf(v->why, sizeof(v->why), "%s", message->text);
		break;
	case MESSAGE_CALL:
		snprintf(v->call, sizeof(v->call), "%.*s", (int)sizeof(v->call) - 1, message->text);
		break;
	case MESSAGE_DATA:
		v->data = message->value;
		break;
	case MESSAGE_END:
		v->has_ended = true;
		break;
	case MESSAGE_NOTHING:
		verdict_take_note(v, message->text);
		break;
	case MESSAGE_PLATFORM:
	case MESSAGE_ABOUT:
		break;
	}
}

static void verdict_describe_end(const struct watch_result *end, char *text, size_t room)
{
	switch (end->end) {
	case WATCH_EXITED:
		snprintf(text, room, "the process exited with status %d", end->value);
		break;
	case WATCH_DIED:
		snprintf(text, room, "the process died of signal %d, %s", end->value,
			 strsignal(end->value));
		break;
	case WATCH_TIMEOUT:
		snprintf(text, room, "the test did not end within %d s", end->value);
		break;
	case WATCH_TOTAL:
		snprintf(text, room, "the run did not end within %d s", end->value);
		break;
	case WATCH_FAILED:
		snprintf(text, room, "no process for the test: %s", strerror(end->value));
		break;
	}
}

/* The check counts, and not what the process did after the test. */
static bool verdict_is_failed_check(const struct verdict *v)
{
	return v->has_result && v->checked == TEST_FAILED;
}

void verdict_take_end(struct verdict *v, const struct watch_result *end,
		      const struct opencl_note *note)
{
	char how[350];

	if (v->has_result && v->has_ended && end->end == WATCH_EXITED && !end->value)
		return;
	verdict_describe_end(end, how, sizeof(how) - 20);
	if (v->has_result)
		strcat(how, ", after the test");
	v->is_death = true;
	v->end = *end;
	opencl_describe_note(note, v->last_call, sizeof(v->last_call));
	if (verdict_is_failed_check(v)) {
		verdict_take_note(v, how);
		return;
	}
	v->result = TEST_FAILED;
	snprintf(v->why, sizeof(v->why), "%s", how);
	snprintf(v->call, sizeof(v->call), "%s", v->last_call);
}

/*
 * An OpenCL error instead of CL_SUCCESS.  climport passes the sixteen calls to the driver, so their
 * errors may be the driver's.  For all other calls climport makes up for missing features.
 */
static bool verdict_is_error(const struct verdict *v)
{
	const char *exact = getenv("CLIMPORT_CONFORM_EXACT"), *code = strstr(v->why, " is -");

	if (!code || !strstr(code, ", expected 0"))
		return false;
	return !exact || strcmp(exact, "1") || strstr(v->why, "host_access_run(") ||
	       strstr(v->why, "row->run(");
}

bool verdict_may_be_the_drivers(const struct verdict *v)
{
	if (v->result != TEST_FAILED)
		return false;
	if (v->is_death && !verdict_is_failed_check(v))
		return v->end.end != WATCH_TOTAL && v->end.end != WATCH_FAILED;
	return verdict_is_error(v) || (v->data & DATA_IS_WRONG);
}

bool verdict_is_the_drivers(const struct verdict *v, const struct verdict *plain)
{
	if (plain->result != TEST_FAILED || v->is_death != plain->is_death)
		return false;
	if (v->is_death && !verdict_is_failed_check(v))
		return v->end.end == plain->end.end && v->end.value == plain->end.value &&
		       v->has_result == plain->has_result &&
		       !strcmp(v->last_call, plain->last_call);
	return v->data == plain->data && !strcmp(v->why, plain->why) &&
	       !strcmp(v->notes, plain->notes);
}

/* The check, with the names of OpenCL's errors behind their numbers. */
static void verdict_name_errors(const char *why, char *text, size_t room)
{
	const char *code = strstr(why, " is "), *expected = strstr(why, ", expected ");
	const char *name = NULL, *wanted = NULL;

	if (code && expected &&
	    strtoll(code + 4, NULL, 10) + strtoll(expected + 11, NULL, 10) < 0) {
		name = cl_error_known((int)strtoll(code + 4, NULL, 10));
		wanted = cl_error_known((int)strtoll(expected + 11, NULL, 10));
	}
	if (name && wanted)
		snprintf(text, room, "%s (%s instead of %s)", why, name, wanted);
	else
		snprintf(text, room, "%s", why);
}

static void verdict_add_lines(char *text, size_t room, const char *prefix, const char *lines)
{
	while (*lines) {
		size_t length = strcspn(lines, "\n");

		verdict_append(text, room, prefix, strlen(prefix));
		verdict_append(text, room, lines, length);
		verdict_append(text, room, "\n", 1);
		lines += length + (lines[length] == '\n');
	}
}

void verdict_describe(const struct verdict *v, char *text, size_t room)
{
	char why[700];

	*text = 0;
	if (v->result == TEST_FAILED) {
		verdict_name_errors(v->why, why, sizeof(why));
		verdict_add_lines(text, room, "", why);
		verdict_add_lines(text, room, "", v->call);
	}
	verdict_add_lines(text, room, "", v->notes);
	verdict_add_lines(text, room, "printed: ", v->output);
}
