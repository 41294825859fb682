/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/sandbox.h"

#include <stdio.h>
#include <sys/prctl.h>

static struct {
	bool is_filtered, no_new_privs;
	long filters;
} at_load;

/* From Linux 5.9 on the kernel tells how many filters there are; 1 before. */
static long filters_count(void)
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

static bool is_filtered(void)
{
	return prctl(PR_GET_SECCOMP) > 0;
}

static bool no_new_privs(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) > 0;
}

long sandbox_filters(void)
{
	return is_filtered() ? filters_count() : 0;
}

__attribute__((constructor)) static void sandbox_note(void)
{
	at_load.is_filtered = is_filtered();
	at_load.no_new_privs = no_new_privs();
	at_load.filters = sandbox_filters();
}

/* Filters that forbid prctl() are rare, those that forbid to open a file are not. */
bool sandbox_is_entered(void)
{
	if (!is_filtered())
		return false;
	if (!at_load.is_filtered || (no_new_privs() && !at_load.no_new_privs))
		return true;
	return filters_count() > at_load.filters;
}
