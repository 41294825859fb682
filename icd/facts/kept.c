/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/facts/kept.h"

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

#define KEPT_FOLDER "/climport/results"
#define KEPT_RECENT 3600 /* seconds */

/* The path of a key's file, which the caller frees.  NULL: the user has no cache. */
static char *kept_path(unsigned long long key)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");

	/* "All paths set in these environment variables must be absolute": XDG base directories */
	if (cache && cache[0] == '/')
		return text_create("%s" KEPT_FOLDER "/%016llx", cache, key);
	if (home && home[0] == '/')
		return text_create("%s/.cache" KEPT_FOLDER "/%016llx", home, key);
	return NULL;
}

/* Root makes no folder in the folder of a user, as the user could not write into root's folder. */
static void kept_create_folder(char *path)
{
	char *end = strrchr(path, '/');
	struct stat parent;
	bool is_foreign;

	*end = '\0';
	is_foreign = !geteuid() && !stat(*path ? path : "/", &parent) && parent.st_uid;
	*end = '/';
	if (!is_foreign)
		mkdir(path, 0700);
}

/* The folder of a file, and the folders above, from the user's cache on. */
static void kept_create_folders(char *path)
{
	char *end = strrchr(path, '/') - strlen(KEPT_FOLDER);

	for (; end; end = strchr(end + 1, '/')) {
		*end = '\0';
		kept_create_folder(path);
		*end = '/';
	}
}

/* A file of the user's own or of root, and nobody else may write the file. */
static bool kept_is_trusted(int fd, bool *is_recent)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	*is_recent = labs((long)(time(NULL) - st.st_mtime)) < KEPT_RECENT;
	return (st.st_uid == geteuid() || !st.st_uid) && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* A probe process inherits the limits and filters of system calls, and may die of them. */
static bool kept_is_record(int fd, struct facts_record *record)
{
	const ssize_t n = read(fd, record, sizeof(*record));

	return n > 0 && facts_are_valid(record, (size_t)n) &&
	       (!record->has_died || record->limits == identity_limits());
}

/* Else each process would make a record, for itself. */
static bool kept_can_write(char *path)
{
	*strrchr(path, '/') = '\0';
	return !faccessat(AT_FDCWD, path, W_OK, AT_EACCESS);
}

/* If the path is a FIFO, open() must not wait for a writer. */
struct facts_record *kept_read(unsigned long long key, bool *is_recent)
{
	char *path = kept_path(key);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
	struct facts_record *record = fd < 0 ? NULL : malloc(sizeof(*record));

	if (record && (!kept_is_trusted(fd, is_recent) || !kept_is_record(fd, record))) {
		free(record);
		record = NULL;
	}
	if (record && !*is_recent)
		*is_recent = !kept_can_write(path);
	free(path);
	if (fd >= 0)
		close(fd);
	return record;
}

/* Other processes see the whole file or no file.  A signal that ends the process leaves no second file. */
void kept_write(unsigned long long key, const struct facts_record *record)
{
	const size_t size = facts_size(record);
	char *path = kept_path(key), *new = path ? text_create("%s.XXXXXX", path) : NULL;
	sigset_t all, before;
	int fd = -1;
	bool is_written;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (new) {
		kept_create_folders(path);
		fd = mkostemp(new, O_CLOEXEC);
	}
	if (fd >= 0) {
		is_written = write(fd, record, size) == (ssize_t)size;
		is_written = !close(fd) && is_written;
		if (!is_written || rename(new, path))
			unlink(new);
	} else if (new) {
		log_debug("%s: %m: what was found out of the driver is not kept", path);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(new);
	free(path);
}
