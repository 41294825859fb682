/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <string.h>

#include "util/utf8.h"

void json_quote(FILE *file, const char *string)
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
