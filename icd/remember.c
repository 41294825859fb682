/* SPDX-License-Identifier: Apache-2.0 */
/* A file for each key, named by the key's hash, with the key in its first line. */
#include "remember.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/log.h"

#define MAX_LINE 2048

static bool directory(char *path, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;

	/* "All paths set in these environment variables must be absolute": XDG base directories */
	if (cache && cache[0] == '/')
		n = snprintf(path, size, "%s", cache);
	else if (home && home[0] == '/')
		n = snprintf(path, size, "%s/.cache", home);
	else
		return false;
	if ((size_t)n >= size - sizeof("/climport"))
		return false;
	mkdir(path, 0700);
	strcat(path, "/climport");
	mkdir(path, 0700);
	return true;
}

/* FNV-1a */
static uint64_t hash(const char *key)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * 0x100000001b3;
	return h;
}

static bool file_of(const char *key, char *path, size_t size)
{
	size_t used;

	if (!directory(path, size))
		return false;
	used = strlen(path);
	return (size_t)snprintf(path + used, size - used, "/%016llx",
				(unsigned long long)hash(key)) < size - used;
}

static bool read_line(FILE *file, char *line, size_t size)
{
	char *end;

	if (!fgets(line, (int)size, file))
		return false;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	return end;
}

bool remember_get(const char *key, char *line, size_t size)
{
	char path[PATH_MAX], found[MAX_LINE];
	FILE *file;
	bool known;

	if (!file_of(key, path, sizeof(path)))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	known = read_line(file, found, sizeof(found)) && !strcmp(found, key) &&
		read_line(file, line, size);
	fclose(file);
	return known;
}

/* Others see the whole file or none. */
void remember_set(const char *key, const char *line)
{
	char path[PATH_MAX], new[PATH_MAX + 8];
	bool written = false;
	FILE *file;
	int fd;

	if (!file_of(key, path, sizeof(path)))
		return;
	snprintf(new, sizeof(new), "%s.XXXXXX", path);
	fd = mkostemp(new, O_CLOEXEC);
	if (fd < 0) {
		log_debug("%s: %m: the result of a self-test is not kept", new);
		return;
	}
	file = fdopen(fd, "w");
	if (file) {
		written = fprintf(file, "%s\n%s\n", key, line) > 0;
		written = !fclose(file) && written;
	} else {
		close(fd);
	}
	if (!written || rename(new, path))
		unlink(new);
}
