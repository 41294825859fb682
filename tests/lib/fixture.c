/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

unsigned char uuid[2][CLIMPORT_UUID_SIZE];

static struct fake_cuda_held held_before;
static int fds_before;

struct climport_stats fixture_read_stats(void)
{
	struct climport_stats s;

	climport_get_stats(&s, sizeof(s));
	return s;
}

struct climport_registration fixture_register(uintptr_t address, size_t size)
{
	struct climport_registration r = { .fd = -7 };

	EXPECT_EQ(climport_register((const void *)address, size, 0, &r, sizeof(r)), 0);
	return r;
}

int fixture_register_error(uintptr_t address, size_t size)
{
	struct climport_registration r = { .fd = -7, .length = 77 };
	int fds = process_count_descriptors(),
	    ret = climport_register((const void *)address, size, 0, &r, sizeof(r));

	EXPECT_EQ(process_count_descriptors(), fds);
	EXPECT_EQ(r.fd, -7);
	EXPECT_EQ(r.length, 77);
	return ret;
}

void fixture_skip_with_module(void)
{
	if (!access("/dev/gdmabuf", F_OK))
		test_skip("/dev/gdmabuf is there");
}

/* The library opens some descriptors once, and keeps the descriptors. */
static void fixture_open_once(void)
{
	struct climport_dmabuf d;

	EXPECT(climport_export_dmabuf(NULL, 1, 0, &d, sizeof(d)) < 0);
}

void fixture_begin(void)
{
	fake_cuda_reset(2);
	fake_cuda_set_current(NULL);
	fake_cuda_uuid(0, uuid[0]);
	fake_cuda_uuid(1, uuid[1]);
	fixture_open_once();
	fake_cuda_reset(2);
	held_before = fake_cuda_held();
	fds_before = process_count_descriptors();
}

void fixture_recount_descriptors(void)
{
	fds_before = process_count_descriptors();
}

void fixture_end(void)
{
	struct climport_stats s = fixture_read_stats();

	EXPECT(fake_cuda_holds(&held_before));
	EXPECT_EQ(process_count_descriptors(), fds_before);
	EXPECT_EQ(s.bytes_pinned, 0);
	EXPECT_EQ(s.bytes_idle, 0);
	EXPECT_EQ(s.bytes_allocated, 0);
}

int fixture_run_child(void (*run)(void *arg), void *arg, char *text, size_t size)
{
	const struct rlimit no_core = { 0, 0 };
	size_t n = 0;
	int status, pipes[2];
	ssize_t got;
	pid_t child;

	EXPECT(!pipe(pipes));
	fflush(stdout);
	child = fork();
	if (!child) {
		setrlimit(RLIMIT_CORE, &no_core);
		alarm(TEST_HANG_S);
		dup2(pipes[1], 2);
		close(pipes[0]);
		close(pipes[1]);
		run(arg);
		_exit(0);
	}
	close(pipes[1]);
	while (n + 1 < size && (got = read(pipes[0], text + n, size - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(pipes[0]);
	EXPECT(waitpid(child, &status, 0) == child);
	if (status)
		printf("# %s\n", text);
	return status;
}

void fixture_run_limited(const char *test, rlim_t descriptors)
{
	struct rlimit before;
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		process_limit_descriptors(descriptors, &before);
		setenv("LIMITED", "1", 1);
		execl("/proc/self/exe", "limited", test, (char *)NULL);
		_exit(126);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}
