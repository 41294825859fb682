/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/text.h"

#include <stdarg.h>
#include <stdio.h>

char *text_create(const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	return length < 0 ? NULL : text;
}
