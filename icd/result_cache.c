/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file for each key, named by the key's hash: the key in its first line, the result in its
 * second.  A file that another user could have written, or that is cut off, is no result.
 */
#include "result_cache.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "identity.h"
#include "import/log.h"
#include "import/thread.h"

#define MAX_LINE 4096
#define FOLDER "/climport/results"
#define RECENT 3600 /* seconds */

static bool directory(char *path, size_t size)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	int n;

	/* "All paths set in these environment variables must be absolute": XDG base directories */
	if (cache && cache[0] == '/')
		n = snprintf(path, size, "%s", cache);
	else if (home && home[0] == '/')
		n = snprintf(path, size, "%s/.cache", home);
	else
		return false;
	if ((size_t)n >= size - sizeof(FOLDER))
		return false;
	strcat(path, FOLDER);
	return true;
}

/* Root makes no folder in another user's, who could not write there. */
static void folder_create(char *path)
{
	char *end = strrchr(path, '/');
	struct stat parent;
	bool foreign;

	*end = '\0';
	foreign = !geteuid() && !stat(*path ? path : "/", &parent) && parent.st_uid;
	*end = '/';
	if (!foreign)
		mkdir(path, 0700);
}

/* With the folders that FOLDER and the user's cache are. */
static void directory_create(char *path)
{
	char *end = path + strlen(path) - strlen(FOLDER);

	for (; end; end = strchr(end + 1, '/')) {
		*end = '\0';
		folder_create(path);
		*end = '/';
	}
	folder_create(path);
}

static bool file_of(const char *key, char *path, size_t size)
{
	size_t used;

	if (!directory(path, size))
		return false;
	used = strlen(path);
	return (size_t)snprintf(path + used, size - used, "/%016llx", identity_hash(key)) <
	       size - used;
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

/* The user's own or root's, and nobody else may write it. */
static bool is_trusted(int fd, time_t *written)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	*written = st.st_mtime;
	return (st.st_uid == geteuid() || !st.st_uid) && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* A descriptor at a FIFO must not wait for its writer. */
static FILE *open_trusted(const char *path, time_t *written)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	FILE *file = NULL;

	if (fd >= 0 && is_trusted(fd, written))
		file = fdopen(fd, "r");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

bool result_cache_get_recent(const char *key, char *line, size_t size, bool *is_recent)
{
	char path[PATH_MAX], found[MAX_LINE];
	time_t written;
	FILE *file;
	bool known;
	THREAD_NO_CANCEL();

	if (!file_of(key, path, sizeof(path)))
		return false;
	file = open_trusted(path, &written);
	if (!file)
		return false;
	known = read_line(file, found, sizeof(found)) && !strcmp(found, key) &&
		read_line(file, line, size);
	fclose(file);
	*is_recent = labs((long)(time(NULL) - written)) < RECENT;
	return known;
}

bool result_cache_get(const char *key, char *line, size_t size)
{
	bool is_recent;

	return result_cache_get_recent(key, line, size, &is_recent);
}

/* Past RLIMIT_FSIZE a write raises SIGXFSZ, which ends a process that does not expect it. */
static bool write_without_signal(FILE *file, const char *key, const char *line)
{
	const struct timespec now = { 0, 0 };
	sigset_t limit, before, pending;
	bool written;

	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &limit, &before);
	sigpending(&pending);
	written = fprintf(file, "%s\n%s\n", key, line) > 0;
	written = !fclose(file) && written;
	if (!written && !sigismember(&pending, SIGXFSZ))
		sigtimedwait(&limit, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return written;
}

/* Others see the whole file or none. */
void result_cache_set(const char *key, const char *line)
{
	char path[PATH_MAX], new[PATH_MAX + 8];
	bool written = false;
	FILE *file;
	int fd;
	THREAD_NO_CANCEL();

	if (strlen(key) >= MAX_LINE - 1 || !directory(path, sizeof(path)))
		return;
	directory_create(path);
	if (!file_of(key, path, sizeof(path)))
		return;
	snprintf(new, sizeof(new), "%s.XXXXXX", path);
	fd = mkostemp(new, O_CLOEXEC);
	if (fd < 0) {
		log_debug("%s: %m: the result of a self-test is not kept", new);
		return;
	}
	file = fdopen(fd, "w");
	if (file)
		written = write_without_signal(file, key, line);
	else
		close(fd);
	if (!written || rename(new, path))
		unlink(new);
}
