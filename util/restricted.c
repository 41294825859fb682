/* SPDX-License-Identifier: Apache-2.0 */
#include "util/restricted.h"

#include <stdio.h>
#include <sys/prctl.h>

static struct {
	bool is_filtered, no_new_privs;
	long filters;
} restricted_at_load;

/*
 * From Linux 5.9 on the kernel tells the number of filters; before, 1 for any number.  1, too, for a
 * file that cannot be read.
 */
static long restricted_count_filters(void)
{
	FILE *file = fopen("/proc/thread-self/status", "re");
	char line[256];
	long mode = 1, count = 1;

	if (!file)
		return 1;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Seccomp: %ld", &mode) == 1)
			count = !!mode;
		else if (sscanf(line, "Seccomp_filters: %ld", &count) == 1)
			break;
	}
	fclose(file);
	return count;
}

/* Whenever the filter was entered. */
static bool restricted_is_filtered(void)
{
	return prctl(PR_GET_SECCOMP) > 0;
}

static bool restricted_has_no_new_privs(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) > 0;
}

long restricted_filters(void)
{
	return restricted_is_filtered() ? restricted_count_filters() : 0;
}

__attribute__((constructor)) static void restricted_note(void)
{
	restricted_at_load.is_filtered = restricted_is_filtered();
	restricted_at_load.no_new_privs = restricted_has_no_new_privs();
	restricted_at_load.filters = restricted_filters();
}

/* A filter without prctl() is rare; a filter without open() is not. */
bool restricted_is_entered(void)
{
	if (!restricted_is_filtered())
		return false;
	if (!restricted_at_load.is_filtered ||
	    (restricted_has_no_new_privs() && !restricted_at_load.no_new_privs))
		return true;
	return restricted_count_filters() > restricted_at_load.filters;
}
