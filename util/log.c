/* SPDX-License-Identifier: Apache-2.0 */
#include "util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/thread.h"
#include "util/utf8.h"

enum level { LEVEL_UNREAD, LEVEL_NONE, LEVEL_ERROR, LEVEL_DEBUG };

#define PREFIX "climport: "

static _Thread_local char log_last_message[LOG_MESSAGE_SIZE];
static _Thread_local unsigned int log_holds;

static const struct {
	const char *value;
	enum level level;
} levels[] = {
	{ "off", LEVEL_NONE }, { "none", LEVEL_NONE },	 { "0", LEVEL_NONE },
	{ "", LEVEL_NONE },    { "error", LEVEL_ERROR }, { "debug", LEVEL_DEBUG },
};

/* LEVEL_UNREAD: an unknown @value. */
static enum level log_level_parse(const char *value)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++)
		if (!strcmp(value, levels[i].value))
			return levels[i].level;
	return LEVEL_UNREAD;
}

/* fprintf() has 8 KiB of the caller's stack where, as of stderr, nothing is buffered. */
static void log_print(const char *message)
{
	char line[sizeof(PREFIX) + LOG_MESSAGE_SIZE];

	snprintf(line, sizeof(line), PREFIX "%s", message);
	utf8_make_printable(line);
	strcat(line, "\n");
	fputs(line, stderr);
}

/* A user who sets the variable wants to see faults: an unknown value is taken for "error". */
static enum level log_level_read(atomic_int *known)
{
	const char *value = secure_getenv("CLIMPORT_LOG");
	enum level level = value ? log_level_parse(value) : LEVEL_NONE;
	int unread = LEVEL_UNREAD, use = level == LEVEL_UNREAD ? LEVEL_ERROR : (int)level;
	char message[LOG_MESSAGE_SIZE];

	if (!atomic_compare_exchange_strong(known, &unread, use) || level != LEVEL_UNREAD)
		return use;
	snprintf(message, sizeof(message),
		 "CLIMPORT_LOG=%.64s is taken for error: the values are error, debug or off "
		 "(also none, 0)",
		 value);
	log_print(message);
	return use;
}

static enum level log_level(void)
{
	static atomic_int known = LEVEL_UNREAD;
	int value = atomic_load_explicit(&known, memory_order_relaxed);

	return value == LEVEL_UNREAD ? log_level_read(&known) : (enum level)value;
}

static void log_keep(const char *format, va_list args)
{
	int saved = errno;
	THREAD_NO_CANCEL();

	vsnprintf(log_last_message, sizeof(log_last_message), format, args);
	if (!log_holds && log_level() >= LEVEL_ERROR)
		log_print(log_last_message);
	errno = saved;
}

int log_errno(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_keep(format, args);
	va_end(args);
	return -error;
}

void log_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_keep(format, args);
	va_end(args);
}

void log_debug(const char *format, ...)
{
	char message[LOG_MESSAGE_SIZE];
	va_list args;
	int saved = errno;
	THREAD_NO_CANCEL();

	if (log_level() < LEVEL_DEBUG)
		return;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	log_print(message);
	errno = saved;
}

void log_hold(void)
{
	if (!log_holds++)
		log_last_message[0] = '\0';
}

void log_resume(bool is_fault)
{
	if (!--log_holds && *log_last_message &&
	    log_level() >= (is_fault ? LEVEL_ERROR : LEVEL_DEBUG)) {
		THREAD_NO_CANCEL();

		log_print(log_last_message);
	}
	if (!is_fault)
		log_last_message[0] = '\0';
}

void log_clear(void)
{
	log_last_message[0] = '\0';
}

const char *log_last(void)
{
	return log_last_message;
}
