/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/objects/device.h"
#include "icd/selftest/identity.h"
#include "icd/selftest/result_cache.h"
#include "icd/text.h"
#include "util/restricted.h"

#define RESULT_FATAL "fatal"
#define REVISION 9 /* of the self-tests: with a new number every test runs again */

/* NULL: nothing is kept. */
static char *result_key_of(const struct device *device, const char *test)
{
	char *identity = identity_device(device->id, device->platform);
	char *key = identity ? text_create("%s, revision %d, %s", test, REVISION, identity) : NULL;

	free(identity);
	return key;
}

static bool result_get_line(const struct device *device, const char *test, char *line, size_t size,
			    bool *is_recent)
{
	char *key = result_key_of(device, test);
	const bool known = key && result_cache_get_recent(key, line, size, is_recent);

	free(key);
	return known;
}

static void result_set_line(const struct device *device, const char *test, const char *line)
{
	char *key = result_key_of(device, test);

	if (key)
		result_cache_set(key, line);
	free(key);
}

bool result_get(const struct device *device, const char *test, long *result)
{
	char line[32];
	bool is_recent;

	if (!result_get_line(device, test, line, sizeof(line), &is_recent) ||
	    sscanf(line, "%ld", result) != 1)
		return false;
	return *result > 0 || is_recent;
}

void result_set(const struct device *device, const char *test, long result)
{
	char line[32];

	snprintf(line, sizeof(line), "%ld", result);
	result_set_line(device, test, line);
}

/* NULL: nothing is kept. */
static char *result_key_in_limits(const struct device *device, const char *test)
{
	char *key = result_key_of(device, test), *limited, limits[IDENTITY_LIMITS_SIZE];

	identity_limits(limits);
	limited = key ? text_create("%s, %s", limits, key) : NULL;
	free(key);
	return limited;
}

/* A program that has restricted its system calls starts no such test, and asks for no limits. */
bool result_is_fatal(const struct device *device, const char *test)
{
	char *key = restricted_is_entered() ? NULL : result_key_in_limits(device, test), line[32];
	bool is_recent, known = key && result_cache_get_recent(key, line, sizeof(line), &is_recent);

	free(key);
	return known && is_recent && !strcmp(line, RESULT_FATAL);
}

void result_set_fatal(const struct device *device, const char *test)
{
	char *key = result_key_in_limits(device, test);

	if (key)
		result_cache_set(key, RESULT_FATAL);
	free(key);
}
