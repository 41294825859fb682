/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a command line.  What is wrong with them is said on standard error. */
#ifndef TOOLS_ARGUMENTS_H
#define TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#define WRONG_USAGE 2 /* exit status */

/* Says what is wrong, and where help is.  Returns WRONG_USAGE. */
int fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Those of one command. */
struct arguments {
	const char *command;
	int argc;
	char **argv; /* argv[0] is the command */
	int next;
	const char *option; /* the last one that was found */
};

/* The next option; false at the first word that is none, or behind "--". */
bool option_next(struct arguments *a);
bool option_is(const struct arguments *a, const char *name);

/* The value of the option that was found last; another option is none.  NULL: said. */
const char *option_value(struct arguments *a);

/* That the option is not known. */
int fail_option(const struct arguments *a);

/* Takes every @word out of @argv, which NULL ends; whether there was one. */
bool take_word(char **argv, const char *word);

/* Bytes, with K, M or G; 0 if it is no such thing. */
size_t parse_size(const char *text);

/* -1 if it is no such number. */
int parse_device(const char *text);

#endif /* TOOLS_ARGUMENTS_H */
