/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/config.h"
#include "icd/layer.h"
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
	return probe_run(key, request, proof->patience_ms, line);
}

cl_device_id *proof_devices(cl_platform_id platform, cl_uint *count)
{
	cl_device_id *devices;

	*count = 0;
	if (next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, count) || !*count)
		return NULL;
	devices = calloc(*count, sizeof(*devices));
	if (devices && !next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, *count, devices, NULL))
		return devices;
	free(devices);
	*count = 0;
	return NULL;
}

int proof_device_number(cl_platform_id platform, cl_device_id root)
{
	cl_uint count;
	cl_device_id *devices = proof_devices(platform, &count);
	int number = -1;

	for (cl_uint i = 0; i < count && number < 0; i++)
		if (devices[i] == root)
			number = (int)i;
	free(devices);
	return number;
}

cl_device_id proof_device_at(cl_platform_id platform, int number)
{
	cl_uint count;
	cl_device_id *devices = proof_devices(platform, &count), device;

	device = number >= 0 && (cl_uint)number < count ? devices[number] : NULL;
	free(devices);
	return device;
}
