/* SPDX-License-Identifier: Apache-2.0 */
#include "util/setting.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"
#include "util/setting_values.h"

/* A bit for each variable of the table whose value has been logged. */
static atomic_ulong setting_logged;

static void setting_log(const char *name, const char *sentence)
{
	size_t number = 0;

	while (setting_name(number) && strcmp(setting_name(number), name) != 0)
		number++;
	if (!(atomic_fetch_or(&setting_logged, 1UL << number) >> number & 1))
		log_error("%s", sentence);
}

const char *setting_get(const char *name)
{
	const char *value = secure_getenv(name);
	char sentence[SETTING_SENTENCE_SIZE];

	if (!value || !*value)
		return NULL;
	if (setting_is_understood(name, value, sentence))
		return value;
	setting_log(name, sentence);
	return NULL;
}

bool setting_is(const char *name, const char *value)
{
	const char *set = setting_get(name);

	return set && !strcmp(set, value);
}

void setting_report(void)
{
	const char *name;

	for (size_t i = 0; (name = setting_name(i)); i++)
		if (strcmp(name, "CLIMPORT_LOG") != 0)
			setting_get(name);
}
