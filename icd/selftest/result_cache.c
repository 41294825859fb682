/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file for each key, named by the key's hash: the key in its first line, the result in its
 * second.  A file that another user could have written, or that is cut off, is no result.
 */
#include "icd/selftest/result_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "icd/selftest/identity.h"
#include "icd/text.h"
#include "util/log.h"
#include "util/thread.h"

#define MAX_LINE 4096
#define FOLDER "/climport/results"
#define FILE_FORMAT "/%016llx"
#define FILE_LENGTH 17 /* of the above */
#define RECENT 3600    /* seconds */

/* The file of a key: the caller frees it.  NULL: the user has no cache. */
static char *file_of(const char *key)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	const unsigned long long hash = identity_hash(key);

	/* "All paths set in these environment variables must be absolute": XDG base directories */
	if (cache && cache[0] == '/')
		return text_create("%s" FOLDER FILE_FORMAT, cache, hash);
	if (home && home[0] == '/')
		return text_create("%s/.cache" FOLDER FILE_FORMAT, home, hash);
	return NULL;
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

/* The folder of a file, with those that FOLDER and the user's cache are. */
static void directory_create(char *path)
{
	char *end = path + strlen(path) - strlen(FOLDER) - FILE_LENGTH;

	for (; end; end = strchr(end + 1, '/')) {
		*end = '\0';
		folder_create(path);
		*end = '/';
	}
}

static bool result_cache_read_line(FILE *file, char *line, size_t size)
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

static bool read_result(FILE *file, const char *key, char *line, size_t size)
{
	char *found = malloc(MAX_LINE);
	bool known = found && result_cache_read_line(file, found, MAX_LINE) &&
		     !strcmp(found, key) && result_cache_read_line(file, line, size);

	free(found);
	return known;
}

bool result_cache_get_recent(const char *key, char *line, size_t size, bool *is_recent)
{
	char *path = file_of(key);
	time_t written;
	FILE *file;
	bool known;
	THREAD_NO_CANCEL();

	file = path ? open_trusted(path, &written) : NULL;
	free(path);
	if (!file)
		return false;
	known = read_result(file, key, line, size);
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
static void file_write(const char *path, const char *key, const char *line)
{
	char *new = text_create("%s.XXXXXX", path);
	int fd = new ? mkostemp(new, O_CLOEXEC) : -1;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	bool written = file && write_without_signal(file, key, line);

	if (fd < 0)
		log_debug("%s: %m: the result of a self-test is not kept", path);
	else if (!file)
		close(fd);
	if (fd >= 0 && (!written || rename(new, path)))
		unlink(new);
	free(new);
}

void result_cache_set(const char *key, const char *line)
{
	char *path = strlen(key) < MAX_LINE - 1 ? file_of(key) : NULL;
	THREAD_NO_CANCEL();

	if (path) {
		directory_create(path);
		file_write(path, key, line);
	}
	free(path);
}
