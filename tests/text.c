/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <string.h>

int text_count_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	int count = 0;

	for (const char *at = list; (at = strstr(at, word)); at += length)
		count += (at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]);
	return count;
}
