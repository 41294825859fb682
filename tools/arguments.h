/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a command line.  Mistakes are reported on standard error. */
#ifndef TOOLS_ARGUMENTS_H
#define TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#define WRONG_USAGE 2 /* exit status */

/* Prints the mistake, and the command that prints help.  Returns WRONG_USAGE. */
int fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The arguments of one command. */
struct arguments {
	const char *command;
	int argc;
	char **argv; /* argv[0] is the command */
	int next;
	const char *option; /* the last option that was found */
};

/* Goes to the next option.  False at the first word that is no option, or behind "--". */
bool option_next(struct arguments *a);
bool option_is(const struct arguments *a, const char *name);

/* The value of the last option.  Another option is no value.  NULL: the mistake is reported. */
const char *option_value(struct arguments *a);

/* Reports an unknown option. */
int fail_option(const struct arguments *a);

/* Whether @argv, which NULL ends, has the word. */
bool arguments_have(char **argv, const char *word);

/* Whether the value of an option, NULL or a number or a part of a name, selects the object. */
bool option_names(const char *value, unsigned int number, const char *name);

/* Bytes, with K, M or G; 0 if @text is no size. */
size_t parse_size(const char *text);

/* "16 MiB".  Returns @text. */
const char *size_format(char text[32], size_t size);

#endif /* TOOLS_ARGUMENTS_H */
