/* SPDX-License-Identifier: Apache-2.0 */
#include "terminal.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/utf8.h"

#define USUAL_WIDTH 80

static bool terminal_is(FILE *out)
{
	int fd = fileno(out); /* -1: a stream in memory */

	return fd >= 0 && isatty(fd);
}

void terminal_open_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null",
				    (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
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

/* The sequence that begins a colour, or ends all; "" where colours are not wanted. */
static const char *terminal_colour(FILE *out, enum terminal_colour colour)
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

char *terminal_format(const char *format, va_list args)
{
	char *text;

	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

void terminal_begin(struct terminal_text *t, FILE *out, int indent)
{
	*t = (struct terminal_text){ .out = out, .indent = indent };
	t->stream = open_memstream(&t->text, &t->size);
}

void terminal_add_args(struct terminal_text *t, enum terminal_colour colour, const char *format,
		       va_list args)
{
	char *text = t->stream ? terminal_format(format, args) : NULL;

	if (!text)
		return;
	utf8_make_printable(text);
	if (colour == COLOUR_NONE)
		fputs(text, t->stream);
	else
		fprintf(t->stream, "%s%s%s", terminal_colour(t->out, colour), text,
			terminal_colour(t->out, COLOUR_NONE));
	free(text);
}

void terminal_add(struct terminal_text *t, enum terminal_colour colour, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	terminal_add_args(t, colour, format, args);
	va_end(args);
}

void terminal_end(struct terminal_text *t)
{
	if (!t->stream)
		return;
	fclose(t->stream);
	terminal_wrap(t->out, t->indent < 0 ? 0 : terminal_width(t->out), t->indent, t->text);
	free(t->text);
}

void terminal_line(FILE *out, int indent, const char *format, ...)
{
	struct terminal_text t;
	va_list args;

	terminal_begin(&t, out, indent);
	va_start(args, format);
	terminal_add_args(&t, COLOUR_NONE, format, args);
	va_end(args);
	terminal_end(&t);
}
