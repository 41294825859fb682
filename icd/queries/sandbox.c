/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/sandbox.h"

#include <stdio.h>
#include <sys/prctl.h>

static struct {
	bool is_filtered, no_new_privs;
	long filters;
} at_load;

/* From Linux 5.9 on the kernel tells the number of filters; 1 before. */
static long sandbox_count_filters(void)
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

static bool sandbox_is_filtered(void)
{
	return prctl(PR_GET_SECCOMP) > 0;
}

static bool sandbox_has_no_new_privs(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) > 0;
}

long sandbox_filters(void)
{
	return sandbox_is_filtered() ? sandbox_count_filters() : 0;
}

__attribute__((constructor)) static void sandbox_note(void)
{
	at_load.is_filtered = sandbox_is_filtered();
	at_load.no_new_privs = sandbox_has_no_new_privs();
	at_load.filters = sandbox_filters();
}

/* A filter without prctl() is rare; a filter without open() is not. */
bool sandbox_is_entered(void)
{
	if (!sandbox_is_filtered())
		return false;
	if (!at_load.is_filtered || (sandbox_has_no_new_privs() && !at_load.no_new_privs))
		return true;
	return sandbox_count_filters() > at_load.filters;
}
