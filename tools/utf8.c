/* SPDX-License-Identifier: Apache-2.0 */
#include "utf8.h"

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
