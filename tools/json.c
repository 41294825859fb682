/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <string.h>

#include "util/utf8.h"

static void json_quote(FILE *file, const char *string)
{
	fputc('"', file);
	for (size_t length; *string; string += length ? length : 1) {
		length = utf8_length(string);
		if (!length)
			fputs("\\ufffd", file);
		else if ((unsigned char)*string < ' ')
			fprintf(file, "\\u%04x", *string);
		else
			fprintf(file, "%s%.*s", strchr("\"\\", *string) ? "\\" : "", (int)length,
				string);
	}
	fputc('"', file);
}

static void json_line(struct json *j)
{
	fputc('\n', j->out);
	for (int i = 0; i < j->depth; i++)
		fputs("  ", j->out);
}

/* What comes before a value. */
static void json_begin(struct json *j, const char *name)
{
	if (j->more)
		fputc(',', j->out);
	if (j->depth)
		json_line(j);
	if (name)
		fprintf(j->out, "\"%s\": ", name);
	j->more = true;
}

void json_open(struct json *j, const char *name, char bracket)
{
	json_begin(j, name);
	fputc(bracket, j->out);
	j->depth++;
	j->more = false;
}

void json_close(struct json *j, char bracket)
{
	j->depth--;
	if (j->more)
		json_line(j);
	fputc(bracket, j->out);
	j->more = true;
	if (!j->depth)
		fputc('\n', j->out);
}

void json_string(struct json *j, const char *name, const char *value)
{
	json_begin(j, name);
	if (value && *value)
		json_quote(j->out, value);
	else
		fputs("null", j->out);
}

void json_bool(struct json *j, const char *name, bool value)
{
	json_begin(j, name);
	fputs(value ? "true" : "false", j->out);
}

void json_number(struct json *j, const char *name, double value)
{
	json_begin(j, name);
	fprintf(j->out, "%.15g", value);
}
