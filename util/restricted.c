/* SPDX-License-Identifier: Apache-2.0 */
#include "util/restricted.h"

#include <stdio.h>
#include <sys/prctl.h>

/* Filters of the process when climport was loaded. */
static long restricted_filters_at_load;

/* From Linux 5.9 on the kernel tells the number of filters; 1 before. */
static long restricted_count(void)
{
	FILE *file = fopen("/proc/thread-self/status", "re");
	char line[256];
	long count = 1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Seccomp_filters: %ld", &count) == 1)
			break;
	if (file)
		fclose(file);
	return count;
}

static long restricted_filters(void)
{
	return prctl(PR_GET_SECCOMP) > 0 ? restricted_count() : 0;
}

__attribute__((constructor)) static void restricted_note(void)
{
	restricted_filters_at_load = restricted_filters();
}

/* Without filters at load, a filter now is a later one: no file is read. */
bool restricted_is_entered(void)
{
	if (!restricted_filters_at_load)
		return prctl(PR_GET_SECCOMP) > 0;
	return restricted_filters() > restricted_filters_at_load;
}
