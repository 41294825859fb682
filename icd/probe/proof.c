/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/config.h"
#include "icd/objects/device.h"
#include "icd/probe/interface.h"
#include "icd/selftest/identity.h"
#include "icd/text.h"
#include "util/restricted.h"

bool proof_is_named(const struct proof *proof, const char *name, size_t length)
{
	return strlen(proof->name) == length && !memcmp(proof->name, name, length);
}

/* The environment's part of keys, and a hash.  False: the platform is unknown. */
static bool proof_platform_key(cl_platform_id platform, char key[PROBE_KEY_SIZE])
{
	bool lasting;
	char *identity = identity_platform(platform, &lasting);

	if (!identity)
		return false;
	snprintf(key, PROBE_KEY_SIZE, "%016llx.%016llx", identity_environment(),
		 text_hash(identity));
	free(identity);
	return true;
}

bool proof_is_platform(cl_platform_id platform, const char *key)
{
	char own[PROBE_KEY_SIZE];

	identity_set_environment(strtoull(key, NULL, 16));
	return proof_platform_key(platform, own) && !strcmp(own, key);
}

/* A filter of system calls may kill the program for a new process. */
static bool proof_may_start_probe(void)
{
	const enum config_probe asked = config_probe();

	return (asked == PROBE_PROCESS || (asked == PROBE_DEFAULT && !restricted_is_entered())) &&
	       !identity_is_privileged();
}

enum probe_end proof_ask(cl_platform_id platform, const struct proof *proof, const char *words,
			 char line[PROBE_LINE_SIZE])
{
	char key[PROBE_KEY_SIZE], request[PROBE_REQUEST_SIZE];
	size_t length = (size_t)snprintf(request, sizeof(request), "%s %s", proof->name, words);

	snprintf(line, PROBE_LINE_SIZE, "no probe process may be started for the proof %s",
		 proof->name);
	if (length >= sizeof(request) || !proof_may_start_probe() ||
	    !proof_platform_key(platform, key))
		return PROBE_NOT_MADE;
	return probe_run(key, request, proof->patience_ms, line, PROBE_LINE_SIZE);
}

enum probe_end proof_ask_facts(cl_platform_id platform, bool with_images, unsigned int patience_ms,
			       char *text, size_t size)
{
	char key[PROBE_KEY_SIZE];

	snprintf(text, size, "no process may be started to test the driver");
	if (!proof_may_start_probe() || !proof_platform_key(platform, key))
		return PROBE_NOT_MADE;
	return probe_run(key, with_images ? PROBE_WITH_IMAGES : NULL, patience_ms, text, size);
}
