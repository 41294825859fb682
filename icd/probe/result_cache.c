/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each key has a file, named by the key's hash.  The first line is the key, the rest the
 * result.  A file is no result if a foreign user could have written the file, or if lines are cut
 * off.
 */
#include "icd/probe/result_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "icd/probe/identity.h"
#include "icd/text.h"
#include "util/log.h"
#include "util/thread.h"

#define MAX_LINE 4096
#define FOLDER "/climport/results"
#define FILE_FORMAT "/%016llx"
#define FILE_LENGTH 17 /* of the above */
#define RECENT 3600    /* seconds */

/* The path of a key's file, which the caller frees.  NULL: the user has no cache. */
static char *result_cache_path(const char *key)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	const unsigned long long hash = text_hash(key);

	/* "All paths set in these environment variables must be absolute": XDG base directories */
	if (cache && cache[0] == '/')
		return text_create("%s" FOLDER FILE_FORMAT, cache, hash);
	if (home && home[0] == '/')
		return text_create("%s/.cache" FOLDER FILE_FORMAT, home, hash);
	return NULL;
}

/* Root makes no folder in the folder of a user, as the user could not write into root's folder. */
static void result_cache_create_folder(char *path)
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

/* The folder of a file, and the folders above, from the user's cache on. */
static void result_cache_create_folders(char *path)
{
	char *end = path + strlen(path) - strlen(FOLDER) - FILE_LENGTH;

	for (; end; end = strchr(end + 1, '/')) {
		*end = '\0';
		result_cache_create_folder(path);
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

/* A file of the user's own or of root, and nobody else may write the file. */
static bool result_cache_is_trusted(int fd, time_t *written)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	*written = st.st_mtime;
	return (st.st_uid == geteuid() || !st.st_uid) && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* If the path is a FIFO, open() must not wait for a writer. */
static FILE *result_cache_open(const char *path, time_t *written)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	FILE *file = NULL;

	if (fd >= 0 && result_cache_is_trusted(fd, written))
		file = fdopen(fd, "r");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

/* All that follows the key, without the last newline. */
static bool result_cache_read_rest(FILE *file, char *text, size_t size)
{
	const size_t used = fread(text, 1, size, file);

	if (!used || used == size || text[used - 1] != '\n')
		return false;
	text[used - 1] = '\0';
	return true;
}

static bool result_cache_read(FILE *file, const char *key, char *text, size_t size)
{
	char *found = malloc(MAX_LINE);
	bool known = found && result_cache_read_line(file, found, MAX_LINE) &&
		     !strcmp(found, key) && result_cache_read_rest(file, text, size);

	free(found);
	return known;
}

bool result_cache_get_recent(const char *key, char *line, size_t size, bool *is_recent)
{
	char *path = result_cache_path(key);
	time_t written;
	FILE *file;
	bool known;
	THREAD_NO_CANCEL();

	file = path ? result_cache_open(path, &written) : NULL;
	free(path);
	if (!file)
		return false;
	known = result_cache_read(file, key, line, size);
	fclose(file);
	*is_recent = labs((long)(time(NULL) - written)) < RECENT;
	return known;
}

/* Past RLIMIT_FSIZE a write raises SIGXFSZ, which ends an unprepared process. */
static bool result_cache_print(FILE *file, const char *key, const char *line)
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

/* Other processes see the whole file or no file. */
static void result_cache_write(const char *path, const char *key, const char *line)
{
	char *new = text_create("%s.XXXXXX", path);
	int fd = new ? mkostemp(new, O_CLOEXEC) : -1;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	bool written = file && result_cache_print(file, key, line);

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
	char *path = strlen(key) < MAX_LINE - 1 ? result_cache_path(key) : NULL;
	THREAD_NO_CANCEL();

	if (path) {
		result_cache_create_folders(path);
		result_cache_write(path, key, line);
	}
	free(path);
}

void result_cache_remove(const char *key)
{
	char *path = result_cache_path(key);
	THREAD_NO_CANCEL();

	if (path)
		unlink(path);
	free(path);
}
