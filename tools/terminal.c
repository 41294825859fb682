/* SPDX-License-Identifier: Apache-2.0 */
#include "terminal.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define USUAL_WIDTH 80

static bool terminal_is(FILE *out)
{
	int fd = fileno(out); /* -1: a stream in memory */

	return fd >= 0 && isatty(fd);
}

int terminal_width(FILE *out)
{
	struct winsize size;

	if (!terminal_is(out))
		return 0;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) || !size.ws_col)
		return USUAL_WIDTH;
	return size.ws_col;
}

const char *terminal_colour(FILE *out, enum terminal_colour colour)
{
	static const char *const sequences[] = {
		[COLOUR_NONE] = "\033[0m",   [COLOUR_BOLD] = "\033[1m", [COLOUR_GOOD] = "\033[32m",
		[COLOUR_DOUBT] = "\033[33m", [COLOUR_BAD] = "\033[31m",
	};
	const char *term = getenv("TERM"), *off = getenv("NO_COLOR");

	if (!terminal_is(out) || (off && *off) || !term || !strcmp(term, "dumb"))
		return "";
	return sequences[colour];
}

/* The columns that @length bytes take: colours take none, and a character of UTF-8 takes one. */
static int terminal_columns(const char *text, size_t length)
{
	bool in_colour = false;
	int columns = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\033')
			in_colour = true;
		else if (in_colour)
			in_colour = text[i] != 'm';
		else
			columns += (text[i] & 0xc0) != 0x80;
	}
	return columns;
}

void terminal_wrap(FILE *out, int width, int indent, const char *text)
{
	int column = 0;

	/* Half of a narrow terminal is for words. */
	if (width && indent > width / 2)
		indent = width / 2;
	if (width && strspn(text, " ") > (size_t)width / 2)
		text += strspn(text, " ") - width / 2;
	while (*text) {
		size_t spaces = strspn(text, " "), length = strcspn(text + spaces, " ");
		int columns = terminal_columns(text + spaces, length);

		if (width && column > indent && column + (int)spaces + columns > width) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
			text += spaces;
			spaces = 0;
		}
		fwrite(text, 1, spaces + length, out);
		column += (int)spaces + columns;
		text += spaces + length;
	}
	fputc('\n', out);
}

void terminal_line(FILE *out, int indent, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return;
	terminal_wrap(out, terminal_width(out), indent, text);
	free(text);
}
