/* SPDX-License-Identifier: Apache-2.0 */
#include "diag_report.h"

#include <stdarg.h>
#include <string.h>

void add_reason(struct reasons *reasons, const char *reason)
{
	size_t used = strlen(reasons->text);

	snprintf(reasons->text + used, sizeof(reasons->text) - used, "%s%s", used ? "; " : "",
		 reason);
}

void diag_say(const struct machine *m, const char *mark, const char *format, ...)
{
	va_list args;

	fprintf(m->out, "  %-5s ", mark);
	va_start(args, format);
	vfprintf(m->out, format, args);
	va_end(args);
	fputc('\n', m->out);
}

const char *size_text(unsigned long long bytes, char *text, size_t size)
{
	if (bytes >= 1024 * MIB && !(bytes % (1024 * MIB)))
		snprintf(text, size, "%llu GiB", bytes >> 30);
	else
		snprintf(text, size, "%llu MiB", bytes >> 20);
	return text;
}
