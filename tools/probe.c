/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport-probe KEY REQUEST: runs a proof on the platform with the key KEY, for a process that must
 * not (icd/probe/proof.h).  The answer, a line, goes to a pipe.  The probe ends within a minute.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <CL/cl.h>

#include "icd/probe/interface.h"

#define MAX_PLATFORMS 64
#define LIMIT 60 /* seconds */

static int probe_answer(const char *line)
{
	char text[2048];
	int n = snprintf(text, sizeof(text), "%s\n", line);

	return write(PROBE_FD, text, (size_t)n) == n ? 0 : 1;
}

static int probe_main(const char *key, const char *request)
{
	cl_platform_id platforms[MAX_PLATFORMS];
	char line[1024];
	cl_uint count = 0;

	if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &count))
		return PROBE_STATUS_NO_PLATFORM;
	for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; i++) {
		probe_fn run = (probe_fn)clGetExtensionFunctionAddressForPlatform(platforms[i],
										  PROBE_FUNCTION);

		if (run && !run(platforms[i], key, request, line, sizeof(line)))
			return probe_answer(line);
	}
	return PROBE_STATUS_NO_PLATFORM;
}

int main(int argc, char **argv)
{
	alarm(LIMIT);
	/* Drivers' handlers at exit have nothing to save. */
	_exit(argc == 3 ? probe_main(argv[1], argv[2]) : 2);
}
