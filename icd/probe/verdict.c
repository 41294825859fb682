/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/layer.h"
#include "icd/selftest/identity.h"
#include "icd/selftest/result_cache.h"
#include "icd/text.h"

#define REVISION 1 /* of the proofs: with a new number every proof runs again */
#define VERDICT_LINE_SIZE (VERDICT_WHY_SIZE + 16)

/* The beginning of an answer, and of a kept line.  Nothing follows on "passed". */
static const char *const verdict_words[] = {
	[VERDICT_PASSED] = "passed",
	[VERDICT_FAILED] = "failed: ",
	[VERDICT_UNKNOWN] = "unknown: ",
};

#define VERDICTS (sizeof(verdict_words) / sizeof(verdict_words[0]))

bool verdict_format(enum verdict verdict, const char *why, char *answer, size_t size)
{
	return (size_t)snprintf(answer, size, "%s%s", verdict_words[verdict], why) < size;
}

/* False: no such line. */
static bool verdict_parse(const char *line, enum verdict *verdict, char why[VERDICT_WHY_SIZE])
{
	for (size_t i = 0; i < VERDICTS; i++) {
		const size_t length = strlen(verdict_words[i]);

		if (strncmp(line, verdict_words[i], length) != 0 ||
		    (i == VERDICT_PASSED && line[length]))
			continue;
		*verdict = (enum verdict)i;
		snprintf(why, VERDICT_WHY_SIZE, "%.*s", VERDICT_WHY_SIZE - 1, line + length);
		return true;
	}
	return false;
}

static cl_platform_id verdict_platform_of(cl_device_id device)
{
	cl_platform_id platform = NULL;

	if (next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL))
		return NULL;
	return platform;
}

/*
 * The name of a kept verdict, which the caller frees.  How many devices there are may decide what a
 * driver does with the memory of one.  NULL: nothing is kept.
 */
static char *verdict_key(cl_device_id device, const struct proof *proof, const char *words)
{
	cl_platform_id platform = verdict_platform_of(device);
	char *identity = platform ? identity_device(device, platform) : NULL, *key = NULL;
	cl_uint count = 0;

	if (identity && !next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count))
		key = text_create("proof %d, %s %s, of %u devices, %s", REVISION, proof->name,
				  words, count, identity);
	free(identity);
	return key;
}

static bool verdict_get_kept(const char *key, enum verdict wanted, char why[VERDICT_WHY_SIZE])
{
	char line[VERDICT_LINE_SIZE];
	enum verdict verdict;
	bool is_recent;

	return result_cache_get_recent(key, line, sizeof(line), &is_recent) &&
	       verdict_parse(line, &verdict, why) && verdict == wanted &&
	       (is_recent || verdict == VERDICT_PASSED);
}

/* A failure has a file of its own: what passed stays known where limits make the proof fail. */
static enum verdict verdict_recall(const char *key, char why[VERDICT_WHY_SIZE])
{
	char *limited;
	bool has_failed;

	if (verdict_get_kept(key, VERDICT_PASSED, why))
		return VERDICT_PASSED;
	limited = identity_add_limits(key);
	has_failed = limited && verdict_get_kept(limited, VERDICT_FAILED, why);
	free(limited);
	return has_failed ? VERDICT_FAILED : VERDICT_UNKNOWN;
}

static void verdict_keep(const char *key, enum verdict verdict, const char *why)
{
	char line[VERDICT_LINE_SIZE], *limited = NULL;

	if (verdict == VERDICT_FAILED)
		key = limited = identity_add_limits(key);
	if (key && verdict_format(verdict, why, line, sizeof(line)))
		result_cache_set(key, line);
	free(limited);
}

/* Whether the probe that gave no answer tells something about the driver. */
static enum verdict verdict_judge(enum probe_end end, const char *line, char why[VERDICT_WHY_SIZE])
{
	if (probe_blames_driver(end)) {
		snprintf(why, VERDICT_WHY_SIZE, "the driver %s (%.*s)",
			 end == PROBE_HANGS ? "hangs" : "dies", VERDICT_WHY_SIZE - 32, line);
		return VERDICT_FAILED;
	}
	if (end == PROBE_ANSWERED)
		line = "climport-probe answers nonsense";
	snprintf(why, VERDICT_WHY_SIZE, "%.*s", VERDICT_WHY_SIZE - 1, line);
	return end == PROBE_NOT_MADE ? VERDICT_UNKNOWN : VERDICT_UNANSWERED;
}

static enum verdict verdict_ask(cl_device_id device, const struct proof *proof, const char *words,
				char why[VERDICT_WHY_SIZE])
{
	char line[PROBE_LINE_SIZE];
	cl_platform_id platform = verdict_platform_of(device);
	enum verdict verdict;
	enum probe_end end;

	if (!platform) {
		snprintf(why, VERDICT_WHY_SIZE, "the device's platform is unknown");
		return VERDICT_UNKNOWN;
	}
	end = proof_ask(platform, proof, words, line);
	if (end == PROBE_ANSWERED && verdict_parse(line, &verdict, why))
		return verdict;
	return verdict_judge(end, line, why);
}

enum verdict verdict_get(cl_device_id device, const struct proof *proof, const char *words,
			 char why[VERDICT_WHY_SIZE])
{
	char *key = verdict_key(device, proof, words);
	enum verdict verdict = key ? verdict_recall(key, why) : VERDICT_UNKNOWN;

	if (verdict == VERDICT_UNKNOWN) {
		verdict = verdict_ask(device, proof, words, why);
		if (key && (verdict == VERDICT_PASSED || verdict == VERDICT_FAILED))
			verdict_keep(key, verdict, why);
	}
	free(key);
	return verdict;
}
