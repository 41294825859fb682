/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that is left for the process.  A control group is full only after the group's pages of
 * files are gone: the kernel gives back pages of files first.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/import.h"

/* The files of a hierarchy, of version 2 and of version 1. */
struct group_files {
	const char *controllers; /* in /proc/self/cgroup */
	const char *root, *limit, *usage, *cached;
};

static const struct group_files versions[] = {
	{ "", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file" },
	{ "memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	  "total_inactive_file" },
};

/* The number after @word at the beginning of a line; "": of the first line. */
static bool available_file_number(const char *path, const char *word, size_t *number)
{
	const size_t length = strlen(word);
	FILE *file = fopen(path, "re");
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, word, length) &&
			sscanf(line + length + strspn(line + length, ": "), "%zu", number) == 1;
	if (file)
		fclose(file);
	return found;
}

static bool available_group_number(const struct group_files *files, const char *group,
				   const char *name, const char *word, size_t *number)
{
	char *path;
	bool found;

	if (asprintf(&path, "%s%s/%s", files->root, group, name) < 0)
		return false;
	found = available_file_number(path, word, number);
	free(path);
	return found;
}

static size_t available_in_group(const struct group_files *files, const char *group)
{
	size_t limit, usage, cached = 0;

	if (!available_group_number(files, group, files->limit, "", &limit) ||
	    !available_group_number(files, group, files->usage, "", &usage))
		return SIZE_MAX; /* "max", or not seen from here */
	available_group_number(files, group, "memory.stat", files->cached, &cached);
	usage -= cached < usage ? cached : usage;
	return usage < limit ? limit - usage : 0;
}

/* The group, and all groups around the group. */
static size_t available_in_groups(const struct group_files *files, char *group)
{
	size_t least = SIZE_MAX;

	for (;;) {
		size_t available = available_in_group(files, strcmp(group, "/") ? group : "");
		char *end = strrchr(group, '/');

		least = available < least ? available : least;
		if (!end || !*group)
			return least;
		*end = '\0';
	}
}

/* "hierarchy-ID:controller-list:cgroup-path" */
static size_t available_in_line(char *line)
{
	char *controllers = strchr(line, ':'), *group = NULL;

	if (controllers)
		group = strchr(++controllers, ':');
	if (!group)
		return SIZE_MAX;
	*group++ = '\0';
	group[strcspn(group, "\n")] = '\0';
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (!strcmp(controllers, versions[i].controllers))
			return available_in_groups(&versions[i], group);
	return SIZE_MAX;
}

size_t import_memory_available(void)
{
	FILE *groups = fopen("/proc/self/cgroup", "re");
	size_t least = SIZE_MAX, room = 0, kib;
	char *line = NULL;

	if (available_file_number("/proc/meminfo", "MemAvailable", &kib))
		least = kib < SIZE_MAX / 1024 ? kib * 1024 : SIZE_MAX;
	while (groups && getline(&line, &room, groups) > 0) {
		size_t available = available_in_line(line);

		least = available < least ? available : least;
	}
	free(line);
	if (groups)
		fclose(groups);
	return least;
}
