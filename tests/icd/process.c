/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests look at in their own process. */
#include "fixture.h"

#include <dirent.h>
#include <sys/mman.h>
#include <time.h>

static struct {
	void *at;
	size_t size;
} mapped[64];
static int num_mapped;

bool settles(bool (*condition)(void *), void *arg)
{
	const struct timespec ms = { 0, 1000000 };

	for (int i = 0; i < 2000; i++) {
		if (condition(arg))
			return true;
		nanosleep(&ms, NULL);
	}
	return false;
}

unsigned char *pages(size_t count)
{
	size_t size = count * 4096;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(at != MAP_FAILED && num_mapped < 64);
	mapped[num_mapped].at = at;
	mapped[num_mapped++].size = size;
	return at;
}

void pages_free(void)
{
	while (num_mapped) {
		num_mapped--;
		munmap(mapped[num_mapped].at, mapped[num_mapped].size);
	}
}

/* Far below where anything is mapped without being asked to be there. */
unsigned char *hole(void)
{
	return (unsigned char *)(uintptr_t)0x100000;
}

int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

int count_mappings(const char *text)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	while (fgets(line, sizeof(line), maps))
		count += strstr(line, text) != NULL;
	fclose(maps);
	return count;
}

bool is_not_mapped(void *arg)
{
	(void)arg;
	return !count_mappings("fake-dmabuf");
}
