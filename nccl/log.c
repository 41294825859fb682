/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LINE_SIZE 256

static _Atomic(nccl_log_fn) log_core;

void net_log_to(nccl_log_fn log)
{
	atomic_store(&log_core, log);
}

nccl_log_fn net_log(void)
{
	return atomic_load(&log_core);
}

__attribute__((format(printf, 2, 0))) static void log_line(enum nccl_log_level level,
							   const char *format, va_list arguments)
{
	nccl_log_fn log = atomic_load(&log_core);
	char line[LINE_SIZE];

	if (!log)
		return;
	vsnprintf(line, sizeof(line), format, arguments);
	log(level, NCCL_LOG_INIT | NCCL_LOG_NET, "climport", 0, "NET/climport: %s", line);
}

void net_warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(NCCL_LOG_WARN, format, arguments);
	va_end(arguments);
}

void net_info(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(NCCL_LOG_INFO, format, arguments);
	va_end(arguments);
}

const char *net_error_text(int error)
{
	const char *text = strerrordesc_np(-error);

	return text ? text : "an error of the transport's own";
}
