/* SPDX-License-Identifier: Apache-2.0 */
#include "util/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* RFC 3629, section 4.  The end of the text is no byte of a longer character. */
size_t utf8_length(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;
	const unsigned char low = *byte == 0xe0 ? 0xa0 : *byte == 0xf0 ? 0x90 : 0x80;
	const unsigned char high = *byte == 0xed ? 0x9f : *byte == 0xf4 ? 0x8f : 0xbf;
	size_t length = *byte < 0xe0 ? 2 : *byte < 0xf0 ? 3 : 4;

	if (*byte < 0x80)
		return 1;
	if (*byte < 0xc2 || *byte > 0xf4 || byte[1] < low || byte[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

static uint32_t utf8_decode(const char *text, size_t length)
{
	const unsigned char *byte = (const unsigned char *)text;
	uint32_t character = length == 1 ? *byte : *byte & (0x7fU >> length);

	for (size_t i = 1; i < length; i++)
		character = character << 6 | (byte[i] & 0x3f);
	return character;
}

/* Controls of ASCII and of Latin-1, and Unicode's (categories Cc, Zl, Zp, and Cf that turn text). */
static bool utf8_is_control(uint32_t character)
{
	static const struct {
		uint32_t first, last;
	} controls[] = {
		{ 0, 0x1f },	    { 0x7f, 0x9f },	{ 0x61c, 0x61c },
		{ 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
	};

	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++)
		if (character >= controls[i].first && character <= controls[i].last)
			return true;
	return false;
}

void utf8_make_printable(char *text)
{
	char *to = text;

	for (size_t length; *text; text += length ? length : 1) {
		length = utf8_length(text);
		if (!length || utf8_is_control(utf8_decode(text, length))) {
			*to++ = '?';
			continue;
		}
		memmove(to, text, length);
		to += length;
	}
	*to = '\0';
}
