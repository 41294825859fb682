/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/result.h"

#include <stdio.h>
#include <stdlib.h>

#include "icd/objects/device.h"
#include "icd/selftest/identity.h"
#include "icd/selftest/job.h"
#include "icd/selftest/result_cache.h"
#include "icd/text.h"

#define REVISION 7 /* of the self-tests: with a new number every test runs again */

/* NULL: nothing is kept. */
static char *result_key_of(const struct device *device, const char *test)
{
	char *identity = identity_device(device->id, device->platform);
	char *key = identity ? text_create("%s, revision %d, %s", test, REVISION, identity) : NULL;

	free(identity);
	return key;
}

bool result_get(const struct device *device, const char *test, long *result)
{
	char *key = result_key_of(device, test), line[32];
	bool is_recent, known;

	known = key && result_cache_get_recent(key, line, sizeof(line), &is_recent) &&
		sscanf(line, "%ld", result) == 1;
	free(key);
	if (!known || (*result == RESULT_HANGS && job_late())) /* a test ended after all */
		return false;
	return *result > 0 || is_recent;
}

void result_set(const struct device *device, const char *test, long result)
{
	char *key = result_key_of(device, test), line[32];

	snprintf(line, sizeof(line), "%ld", result);
	if (key)
		result_cache_set(key, line);
	free(key);
}
