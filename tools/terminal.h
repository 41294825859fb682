/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output for people.  On a terminal, lines are broken between words to fit, and colours mark what
 * is good or bad.  In a pipe or a file, a line is never broken and has no colour.
 */
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdio.h>

enum terminal_colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_GOOD, COLOUR_DOUBT, COLOUR_BAD };

/* The columns of the terminal that @out is; 0 if @out is no terminal. */
int terminal_width(FILE *out);

/*
 * Begins a colour, or ends all colours with COLOUR_NONE: the terminal's sequence, or "" where
 * colours are not wanted: no terminal, TERM=dumb, or NO_COLOR (no-color.org) set.
 */
const char *terminal_colour(FILE *out, enum terminal_colour colour);

/* Prints a line.  If the terminal is too narrow, the line goes on below with @indent spaces. */
void terminal_line(FILE *out, int indent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for a text, in lines of @width columns at most; 0: any. */
void terminal_wrap(FILE *out, int width, int indent, const char *text);

#endif /* TOOLS_TERMINAL_H */
