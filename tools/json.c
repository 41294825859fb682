/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <string.h>

void json_quote(FILE *file, const char *string)
{
	fputc('"', file);
	for (; *string; string++) {
		if (strchr("\"\\", *string))
			fputc('\\', file);
		if ((unsigned char)*string >= ' ')
			fputc(*string, file);
	}
	fputc('"', file);
}
