/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "terminal.h"

int fail_usage(const char *format, ...)
{
	struct terminal_text t;
	va_list args;

	terminal_begin(&t, stderr, 4);
	terminal_add(&t, COLOUR_NONE, "climport: ");
	va_start(args, format);
	terminal_add_args(&t, COLOUR_NONE, format, args);
	va_end(args);
	terminal_end(&t);
	fputs("Try 'climport --help'.\n", stderr);
	return WRONG_USAGE;
}

bool option_next(struct arguments *a)
{
	if (a->next == a->argc || a->argv[a->next][0] != '-' || !a->argv[a->next][1])
		return false;
	a->option = a->argv[a->next++];
	return strcmp(a->option, "--") != 0;
}

bool option_is(const struct arguments *a, const char *name)
{
	return !strcmp(a->option, name);
}

const char *option_value(struct arguments *a)
{
	const char *value = a->next < a->argc ? a->argv[a->next] : NULL;

	if (!value || (!strncmp(value, "--", 2) && value[2])) {
		fail_usage("%s: %s needs a value", a->command, a->option);
		return NULL;
	}
	a->next++;
	return value;
}

int fail_option(const struct arguments *a)
{
	return fail_usage("%s: unknown option %s", a->command, a->option);
}

bool arguments_have(char **argv, const char *word)
{
	while (*argv && strcmp(*argv, word))
		argv++;
	return *argv;
}

bool option_names(const char *value, unsigned int number, const char *name)
{
	if (!value)
		return true;
	if (*value && strspn(value, "0123456789") == strlen(value))
		return strtoul(value, NULL, 10) == number;
	return strcasestr(name, value) != NULL;
}

size_t parse_size(const char *text)
{
	static const char units[] = "KMG";
	char *end;
	unsigned long long size = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	int shift = unit ? 10 * (int)(unit - units + 1) : 0;

	if (*text < '0' || *text > '9' || (*end && (!unit || end[1])))
		return 0;
	if (size == ULLONG_MAX || size > SIZE_MAX >> shift) /* ULLONG_MAX: too large */
		return 0;
	return size << shift;
}

const char *size_format(char text[32], size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	double value = (double)size;
	size_t unit = 0;

	for (; value >= 1024 && unit < 3; unit++)
		value /= 1024;
	snprintf(text, 32, "%.4g %s", value, units[unit]);
	return text;
}
