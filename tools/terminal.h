/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output for people.  On a terminal, lines are broken between words to fit, and colours mark what
 * is good or bad.  In a pipe or a file, a line is never broken and has no colour.
 *
 * Names of drivers, devices and files are bytes of any kind, and a terminal obeys some.  So every
 * text that is printed here is made safe (util/utf8.h).  The colours alone are commands to the
 * terminal.
 */
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdarg.h>
#include <stdio.h>

/* No colours: no terminal, TERM=dumb, or NO_COLOR (no-color.org) set. */
enum terminal_colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_GOOD, COLOUR_DOUBT, COLOUR_BAD };

/*
 * For the beginning of a program: opens the standard files that are closed.  The next file that is
 * opened would take such a descriptor, and get what is printed.  What is printed there is an error, and
 * a program that is started has the descriptor closed again.
 */
void terminal_open_files(void);

/* The columns of the terminal that @out is; 0 if @out is no terminal. */
int terminal_width(FILE *out);

/*
 * Prints a line.  If the terminal is too narrow, the line goes on below with @indent spaces.
 * @indent < 0: the line is never broken, as a reader copies the text.
 */
void terminal_line(FILE *out, int indent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A line of pieces that differ in colour.  terminal_end() prints the line. */
struct terminal_text {
	FILE *out, *stream; /* stream is NULL if there is no memory: nothing is printed */
	int indent;
	char *text;
	size_t size;
};

void terminal_begin(struct terminal_text *t, FILE *out, int indent);
void terminal_add(struct terminal_text *t, enum terminal_colour colour, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void terminal_add_args(struct terminal_text *t, enum terminal_colour colour, const char *format,
		       va_list args) __attribute__((format(printf, 3, 0)));
void terminal_end(struct terminal_text *t);

/* The text as it is, of bytes of any kind.  The caller frees the text.  NULL: no memory. */
char *terminal_format(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* Prints a text of climport's own in lines of @width columns at most; 0: any. */
void terminal_wrap(FILE *out, int width, int indent, const char *text);

#endif /* TOOLS_TERMINAL_H */
