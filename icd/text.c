/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

unsigned long long text_hash_bytes(const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;
	unsigned long long h = 0xcbf29ce484222325;

	while (size--)
		h = (h ^ *byte++) * 0x100000001b3;
	return h;
}

/* The finalizer is splitmix64's. */
unsigned long long text_hash(const char *text)
{
	unsigned long long h = text_hash_bytes(text, strlen(text));

	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
	h = (h ^ h >> 27) * 0x94d049bb133111eb;
	return h ^ h >> 31;
}
