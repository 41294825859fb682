/* SPDX-License-Identifier: Apache-2.0 */
#include "util/setting_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The values are a list of words, or the least and the greatest of a number ("1 to 8"). */
static const struct setting {
	const char *name, *values;
} settings[] = {
	{ "CLIMPORT_VERSION", "1.0.0 or 1.1.0" },
	{ "CLIMPORT_DISABLE", "1 or 0" },
	{ "CLIMPORT_VERIFY", "1 or 0" },
	{ "CLIMPORT_LOG", "error, debug, off, none or 0" },
	{ "CLIMPORT_IMAGE2D_FROM_BUFFER", "1 or 0" },
	{ "CLIMPORT_PROBE", "here or off" },
	{ "CLIMPORT_NUMBA_VMM", "1 or 0" },
	{ "CLIMPORT_NUMBA_SYNC", "1 or 0" },
	{ "CLIMPORT_NET_PROVIDER", "verbs, tcp or none" },
	{ "CLIMPORT_NET_OWN_EXPORT", "1 or 0" },
	{ "CLIMPORT_NET_RAILS", "1 to 8" },
	{ "CLIMPORT_NET_THREADS", "0 to 16" },
	{ "CLIMPORT_CONFORM_EXACT", "1 or 0" },
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

const char *setting_name(size_t number)
{
	return number < SETTINGS ? settings[number].name : NULL;
}

const char *setting_values(const char *name)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (!strcmp(settings[i].name, name))
			return settings[i].values;
	return NULL;
}

/* False: the values are words. */
static bool setting_range(const char *values, unsigned long *least, unsigned long *most)
{
	return sscanf(values, "%lu to %lu", least, most) == 2;
}

static bool setting_is_within(const char *value, unsigned long least, unsigned long most)
{
	char *end;
	const unsigned long number = strtoul(value, &end, 0);

	return *value >= '0' && *value <= '9' && !*end && number >= least && number <= most;
}

/* Whether the list "a, b or c" has the word. */
static bool setting_has_word(const char *values, const char *word)
{
	const size_t wanted = strlen(word);

	while (*values) {
		const size_t length = strcspn(values, " ,");

		if (length == wanted && !memcmp(values, word, length) && strcmp(word, "or") != 0)
			return true;
		values += length;
		values += strspn(values, " ,");
	}
	return false;
}

bool setting_is_understood(const char *name, const char *value,
			   char sentence[SETTING_SENTENCE_SIZE])
{
	const char *values = setting_values(name);
	unsigned long least, most;
	bool is_range;

	if (!values || !*value)
		return true;
	is_range = setting_range(values, &least, &most);
	if (is_range ? setting_is_within(value, least, most) : setting_has_word(values, value))
		return true;
	snprintf(sentence, SETTING_SENTENCE_SIZE, "%s=%.64s is not understood: %s %s", name, value,
		 is_range ? "a number from" : "one of", values);
	return false;
}
