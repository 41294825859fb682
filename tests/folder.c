/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

static char folder_name[] = "/tmp/climport-XXXXXX";
static pid_t folder_owner;

static int folder_remove_one(const char *path, const struct stat *status, int type,
			     struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	remove(path);
	return 0;
}

static void folder_remove(void)
{
	if (getpid() == folder_owner)
		nftw(folder_name, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Other users pass through the folder, as tests give files in the folder to other users. */
__attribute__((constructor)) static void folder_create(void)
{
	if (!mkdtemp(folder_name))
		return;
	folder_owner = getpid();
	chmod(folder_name, 0711);
	atexit(folder_remove);
}

void folder_path(const char *name, char *path, size_t room)
{
	EXPECT(folder_owner);
	EXPECT((size_t)snprintf(path, room, "%s/%s", folder_name, name) < room);
}
