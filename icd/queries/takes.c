/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/takes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/probe/probe.h"
#include "icd/selftest/identity.h"
#include "icd/selftest/result_cache.h"
#include "icd/text.h"
#include "util/log.h"

#define REVISION 4		/* of the answers */
#define NO_ANSWER "no answer: " /* then the reason: the line for a failed probe */

/* "takes PLATFORM COUNT DEVICE ... end" */
bool takes_format(const struct takes *t, char *line, size_t size)
{
	size_t used = (size_t)snprintf(line, size, "takes %u %u", t->platform, t->count);

	for (cl_uint i = 0; i < t->count && used < size; i++)
		used += (size_t)snprintf(line + used, size - used, " %u", t->device[i]);
	if (used < size)
		used += (size_t)snprintf(line + used, size - used, " end");
	return used < size;
}

bool takes_parse(const char *line, struct takes *t)
{
	int n = 0;

	if (sscanf(line, "takes %u %u%n", &t->platform, &t->count, &n) != 2 ||
	    t->count > TAKES_MAX_DEVICES)
		return false;
	for (cl_uint i = 0; i < t->count; i++) {
		unsigned int takes;
		int length = 0;

		line += n;
		if (sscanf(line, " %u%n", &takes, &length) != 1 || takes > 255)
			return false;
		t->device[i] = (unsigned char)takes;
		n = length;
	}
	return !strcmp(line + n, " end");
}

char *takes_key(cl_platform_id platform, bool *lasting)
{
	char *identity = identity_platform(platform, lasting);
	char *key = identity ? text_create("takes %d, %s", REVISION, identity) : NULL;

	free(identity);
	*lasting &= key != NULL;
	return key;
}

/* Whether the probe of a device died. */
static bool takes_has_died(const struct takes *t)
{
	for (cl_uint i = 0; i < t->count; i++)
		if (t->device[i] & TAKES_DIED)
			return true;
	return false;
}

/* Bad news is believed for an hour. */
static bool takes_read(const char *key, struct takes *t)
{
	char line[PROBE_LINE_SIZE];
	bool is_recent;

	return result_cache_get_recent(key, line, sizeof(line), &is_recent) &&
	       takes_parse(line, t) && ((t->platform && !takes_has_died(t)) || is_recent);
}

bool takes_get_kept(const char *key, struct takes *t)
{
	char *limited;
	bool known = takes_read(key, t);

	if (known)
		return true;
	limited = identity_add_limits(key);
	known = limited && takes_read(limited, t);
	free(limited);
	return known;
}

/* A probe may have died of the limits of the process. */
void takes_keep(const char *key, const struct takes *t)
{
	char line[PROBE_LINE_SIZE], *limited = takes_has_died(t) ? identity_add_limits(key) : NULL;

	if (takes_format(t, line, sizeof(line)) && (limited || !takes_has_died(t)))
		result_cache_set(limited ? limited : key, line);
	free(limited);
}

bool takes_recall(cl_platform_id platform, struct takes *t)
{
	bool lasting;
	char *key = takes_key(platform, &lasting);
	bool known = lasting && takes_get_kept(key, t);

	free(key);
	return known;
}

/* A key of its own: a late answer of the probe may be kept at the same moment. */
static char *takes_key_unanswered(const char *key)
{
	char *limited = identity_add_limits(key);
	char *unanswered = limited ? text_create("unanswered %s", limited) : NULL;

	free(limited);
	return unanswered;
}

bool takes_is_unanswered(const char *key)
{
	char *unanswered = takes_key_unanswered(key), line[PROBE_LINE_SIZE];
	bool is_recent, known;

	known = unanswered && result_cache_get_recent(unanswered, line, sizeof(line), &is_recent);
	free(unanswered);
	if (!known || !is_recent || strncmp(line, NO_ANSWER, strlen(NO_ANSWER)))
		return false;
	log_debug("the platform's extension names are not reported for an hour: %s",
		  line + strlen(NO_ANSWER));
	return true;
}

void takes_note_moment(const char *key, const struct takes *t)
{
	char *unanswered = takes_has_died(t) ? NULL : takes_key_unanswered(key);

	if (unanswered)
		result_cache_remove(unanswered);
	free(unanswered);
}

void takes_keep_unanswered(const char *key, const char *why)
{
	char *line = text_create(NO_ANSWER "%s", why), *unanswered = takes_key_unanswered(key);

	if (line && unanswered)
		result_cache_set(unanswered, line);
	free(unanswered);
	free(line);
}
