/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

/* The monitor starts for programs that ask for a monitor. */
__attribute__((constructor)) static void monitor_fixture_ask(void)
{
	setenv("CLIMPORT_KEEP_HOST", "1", 1);
}

void monitor_fixture_needed(void)
{
	if (!monitor_is_available())
		test_skip("%s", monitor_describe());
}

char *monitor_fixture_map(size_t size)
{
	char *p = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	EXPECT(!mprotect(p + PAGE, size, PROT_READ | PROT_WRITE));
	memset(p + PAGE, 1, size);
	return p + PAGE;
}

void monitor_fixture_wait(const char *p, size_t size)
{
	const struct timespec tick = { 0, 10000000 };
	struct watch watch;

	for (int i = 0; i < 6000; i++) {
		if (!monitor_watch((uintptr_t)p, size, &watch)) {
			watch_put(&watch);
			return;
		}
		nanosleep(&tick, NULL);
	}
}

void monitor_fixture_unmap(char *p, size_t size)
{
	munmap(p - PAGE, size + 2 * PAGE);
}

struct begin {
	const char *p;
	size_t size;
	struct watch watch;
	int ret;
};

static bool begin_try(void *arg)
{
	struct begin *begin = arg;

	begin->ret = monitor_watch((uintptr_t)begin->p, begin->size, &begin->watch);
	return begin->ret != -EAGAIN;
}

struct watch monitor_fixture_watch(const char *p, size_t size)
{
	struct begin begin = { .p = p, .size = size };

	EXPECT(process_settles(begin_try, &begin));
	EXPECT_EQ(begin.ret, 0);
	EXPECT(watch_is_current(&begin.watch));
	return begin.watch;
}

static size_t overlap_of(uintptr_t a, uintptr_t a_end, uintptr_t b, uintptr_t b_end)
{
	uintptr_t start = a > b ? a : b, end = a_end < b_end ? a_end : b_end;

	return start < end ? end - start : 0;
}

size_t monitor_fixture_registered(const char *p, size_t size)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	unsigned long start = 0, end = 0, from, to;
	size_t sum = 0;
	char line[4352];

	EXPECT(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			start = from;
			end = to;
		} else if (!strncmp(line, "VmFlags:", 8) && strstr(line, " uw")) {
			sum += overlap_of(start, end, (uintptr_t)p, (uintptr_t)p + size);
		}
	}
	fclose(maps);
	return sum;
}

int monitor_fixture_count(pid_t thread, const char *text)
{
	char path[64], link[PATH_MAX];
	struct dirent *entry;
	int count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/self/task/%d/fd", (int)thread);
	directory = opendir(path);
	EXPECT(directory);
	while ((entry = readdir(directory))) {
		ssize_t length = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link));

		if (length > 0)
			count += memmem(link, (size_t)length, text, strlen(text)) != NULL;
	}
	closedir(directory);
	return count;
}

bool monitor_fixture_has_ended(void *unused)
{
	(void)unused;
	return !process_find_thread("climport-");
}
