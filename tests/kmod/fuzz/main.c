/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz SECONDS [SEED]: a fuzzer of the kernel modules.
 *
 * Several threads and their children make random calls of gdmabuf for SECONDS, and of gdmabuf_mock
 * and gdmabuf_importer where both modules are loaded.  When all processes have ended, gdmabuf and
 * the GPU must hold nothing.  A fault of the kernel is found by the kernel's own checks.
 *
 * random.h    numbers and edge values
 * shared.h    descriptors and memory in use by several threads
 * memory.h    memory to export, and mappings of dma-bufs
 * calls.h     the calls of each module
 * process.h   threads, children, and the program executed again
 */
#include "../modules/mock/mock.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The last child ends CHILD_SECONDS after the run, and a child after an exec later still.  GPU memory
 * that the driver failed to unpin is tried again each second.
 */
enum { CLEAN_SECONDS = 60 };

/* -1 on failure. */
static long long fuzz_read_total(const char *name)
{
	char line[128], format[64];
	long long value = -1;
	FILE *f = fopen("/sys/kernel/debug/gdmabuf", "re");

	if (!f)
		return -1;
	snprintf(format, sizeof(format), "%s: %%lld", name);
	while (value < 0 && fgets(line, sizeof(line), f))
		sscanf(line, format, &value);
	fclose(f);
	return value;
}

/* Whether the modules hold nothing.  With @say, prints whatever is left. */
static int fuzz_is_clean(int say)
{
	static const char *const names[] = { "host-bytes", "gpu-bytes", "watches" };
	struct mock_config works = { 0 };
	struct mock_stats stats = { 0 };
	int gpu = open("/dev/gdmabuf_mock", O_RDWR | O_CLOEXEC), clean = 1;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		long long value = fuzz_read_total(names[i]);

		clean &= !value;
		if (say && value)
			printf("%s: %lld are left\n", names[i], value);
	}
	if (gpu < 0)
		return clean;
	ioctl(gpu, MOCK_CONFIG, &works);
	clean &= !ioctl(gpu, MOCK_STATS, &stats);
	close(gpu);
	if (say)
		printf("GPU: %u pins, %u pages pinned, %u used, %u pins made, %u unpinned again\n",
		       stats.pins, stats.pages_pinned, stats.pages_used, stats.gets,
		       stats.failed_puts);
	return clean && !stats.pins && !stats.pages_pinned && !stats.pages_used;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
	int status = -1, clean;
	time_t end;
	pid_t pid;

	if (argc == 3 && !strcmp(argv[1], FUZZ_AFTER_EXEC))
		return fuzz_after_exec(argv[2]);
	if (argc < 2) {
		fprintf(stderr, "usage: fuzz SECONDS [SEED]\n");
		return 2;
	}
	if (access("/dev/gdmabuf", R_OK | W_OK)) {
		printf("/dev/gdmabuf: %s\n", strerror(errno));
		return 77;
	}
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(NULL);
	end = time(NULL) + atoi(argv[1]);
	pid = fork();
	if (!pid)
		fuzz_run(seed, end);
	waitpid(pid, &status, 0);
	if (status)
		printf("the process that called ended with status %#x\n", (unsigned int)status);
	for (int i = 0; !(clean = fuzz_is_clean(0)) && i < CLEAN_SECONDS; i++)
		sleep(1); /* time: between two looks */
	fuzz_is_clean(1);
	return status || !clean;
}
