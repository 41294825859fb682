/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum level { LEVEL_UNREAD, LEVEL_NONE, LEVEL_ERROR, LEVEL_DEBUG };

static _Thread_local char last[256];

static enum level level_read(void)
{
	const char *value = getenv("CLIMPORT_LOG");

	if (!value)
		return LEVEL_NONE;
	return strcmp(value, "debug") ? LEVEL_ERROR : LEVEL_DEBUG;
}

static enum level level(void)
{
	static atomic_int known = LEVEL_UNREAD;
	int value = atomic_load_explicit(&known, memory_order_relaxed);

	if (value == LEVEL_UNREAD) {
		value = level_read();
		atomic_store_explicit(&known, value, memory_order_relaxed);
	}
	return value;
}

static void keep(const char *format, va_list args)
{
	int saved = errno;

	vsnprintf(last, sizeof(last), format, args);
	if (level() >= LEVEL_ERROR)
		fprintf(stderr, "climport: %s\n", last);
	errno = saved;
}

int log_errno(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	keep(format, args);
	va_end(args);
	return -error;
}

void log_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	keep(format, args);
	va_end(args);
}

void log_debug(const char *format, ...)
{
	char line[256];
	va_list args;
	int saved = errno;

	if (level() < LEVEL_DEBUG)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "climport: %s\n", line);
	errno = saved;
}

void log_clear(void)
{
	last[0] = '\0';
}

const char *log_last(void)
{
	return last;
}
