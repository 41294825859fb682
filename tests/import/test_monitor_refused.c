/* SPDX-License-Identifier: Apache-2.0 */
/* The memory monitor on systems that refuse one of its system calls. */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "monitor_fixture.h"
#include "process.h"
#include "refused_userfaultfd.h"

#define SIZE ((size_t)1 << 20)
#define PATIENCE_S 60

struct refusal {
	const char *name;
	struct refused_call call;
	const char *why;
};

static const struct refusal refusals[] = {
	{ "forbidden", { SYS_userfaultfd, EPERM, 0 }, "the system refuses userfaultfd(2) (EPERM)" },
	{ "by_a_policy",
	  { SYS_userfaultfd, EACCES, 0 },
	  "the system refuses userfaultfd(2) (EACCES)" },
	{ "unknown", { SYS_userfaultfd, ENOSYS, 0 }, "there is no userfaultfd(2) (ENOSYS)" },
	{ "old",
	  { SYS_userfaultfd, EINVAL, 0 },
	  "userfaultfd(2) is older than Linux 5.19, or has no write protection" },
};

static const struct refusal *refusal_row;

static void refusal_run(void)
{
	int threads = process_count_threads();
	struct watch watch;
	char *p;

	refused_call = refusal_row->call;
	p = monitor_fixture_map(SIZE);
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &watch), -EOPNOTSUPP);
	EXPECT(!monitor_is_available());
	EXPECT(!strcmp(monitor_describe(), refusal_row->why));
	EXPECT_EQ(refused_call.count, 1);
	EXPECT_EQ(process_count_threads(), threads);
}

TEST_EACH(refused, struct refusal, refusals,
	  "Where userfaultfd(2) is refused no memory is watched, and the system is asked once.")
{
	refusal_row = row;
	test_in_child(refusal_run);
}

/* The program could close the descriptor of a reader without a table of its own. */
static void reader_refused(void)
{
	struct watch watch;
	char *p;

	if (!monitor_is_available())
		test_skip("%s", monitor_describe());
	refused_call = (struct refused_call){ SYS_close_range, EPERM, 0 };
	p = monitor_fixture_map(SIZE);
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &watch), -EOPNOTSUPP);
	EXPECT(refused_call.count > 0);
	EXPECT(!monitor_is_available());
	EXPECT_EQ(monitor_fixture_count(gettid(), "userfaultfd"), 0);
	EXPECT(!munmap(p, PAGE));
}

TEST(reader, "Without a table of descriptors for the reader no memory is watched.")
{
	test_in_child(reader_refused);
}

static void shortage_passes(void)
{
	struct watch watch;
	char *p;

	if (!monitor_is_available())
		test_skip("%s", monitor_describe());
	p = monitor_fixture_map(SIZE);
	refused_call = (struct refused_call){ SYS_userfaultfd, EMFILE, 0 };
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &watch), -EMFILE);
	refused_call.error = 0;
	watch = monitor_fixture_watch(p, SIZE);
	watch_put(&watch);
}

TEST(shortage, "A lack of descriptors is an error of the call, and the next call tries again.")
{
	test_in_child(shortage_passes);
}

static void kernel_5_18(void)
{
	refused_features = UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
	EXPECT(!monitor_is_available());
	EXPECT(!strcmp(monitor_describe(),
		       "userfaultfd(2) is older than Linux 5.19, or has no write protection"));
}

/* Before Linux 5.19 a write may replace a pinned page. */
TEST(too_old, "A kernel whose userfaultfd(2) lacks the features of Linux 5.19 watches no memory.")
{
	if (!monitor_is_available())
		test_skip("%s", monitor_describe());
	test_in_child(kernel_5_18);
}

struct shortage {
	const char *name;
	int thread;
};

static const struct shortage shortages[] = { { "first", 1 }, { "second", 2 }, { "third", 3 } };

static const struct shortage *shortage_row;

static void thread_refused(void)
{
	struct watch watch;
	char *p;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	refused_thread = shortage_row->thread;
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &watch), -ENOMEM);
	EXPECT(process_settles(monitor_fixture_has_ended, NULL));
	EXPECT_EQ(monitor_fixture_count(gettid(), "userfaultfd"), 0);
	watch = monitor_fixture_watch(p, SIZE);
	EXPECT(!munmap(p, PAGE));
	EXPECT(!watch_is_current(&watch));
}

TEST_EACH(thread, struct shortage, shortages,
	  "A thread that does not start leaves no other thread behind, and the next call tries "
	  "again.")
{
	if (!monitor_is_available())
		test_skip("%s", monitor_describe());
	shortage_row = row;
	test_in_child(thread_refused);
}

/* Each second of the starter's patience ends at once. */
static char *late_start(void)
{
	struct watch watch;
	char *p = monitor_fixture_map(SIZE);

	atomic_store(&refused_held, SYS_close_range);
	refused_call = (struct refused_call){ SYS_futex, ETIMEDOUT, 0 };
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &watch), -EOPNOTSUPP);
	EXPECT(!monitor_is_available());
	refused_call.error = 0;
	return p;
}

/* The program's file is at all numbers that the monitor may have had. */
static void late_reader(void)
{
	int ends[2];
	char text[8] = "";
	char *p;

	alarm(PATIENCE_S);
	p = late_start();
	EXPECT(!pipe(ends));
	for (int fd = 3; fd < 256; fd++)
		if (fd != ends[0] && fd != ends[1])
			dup2(ends[0], fd);
	EXPECT_EQ(write(ends[1], "program", 7), 7);
	atomic_store(&refused_held, -1);
	EXPECT(process_settles(monitor_fixture_has_ended, NULL));
	EXPECT_EQ(read(ends[0], text, 7), 7);
	EXPECT(!munmap(p, SIZE));
}

TEST(late_reader, "A reader that starts too late ends, and reads no file of the program.")
{
	if (!monitor_is_available())
		test_skip("%s", monitor_describe());
	test_in_child(late_reader);
}

/* The program closes all descriptors while the reader starts, and opens files of its own. */
static void *robbing_main(void *arg)
{
	int *ends = arg;

	while (!atomic_load(&refused_is_waiting))
		sched_yield();
	for (int fd = 3; fd < 256; fd++)
		if (fd != ends[0] && fd != ends[1])
			dup2(ends[0], fd);
	atomic_store(&refused_held, -1);
	return NULL;
}

static void robbed_reader(void)
{
	char text[8] = "";
	struct watch watch;
	pthread_t thread;
	int ends[2];
	char *p;

	alarm(PATIENCE_S);
	p = monitor_fixture_map(SIZE);
	EXPECT(!pipe(ends));
	EXPECT_EQ(write(ends[1], "program", 7), 7);
	atomic_store(&refused_held, SYS_close_range);
	EXPECT(!pthread_create(&thread, NULL, robbing_main, ends));
	EXPECT(monitor_watch((uintptr_t)p, SIZE, &watch));
	pthread_join(thread, NULL);
	EXPECT_EQ(read(ends[0], text, 7), 7);
	EXPECT(!munmap(p, SIZE));
}

TEST(robbed_reader, "A reader whose descriptor is another file by now reads no event.")
{
	if (!monitor_is_available())
		test_skip("%s", monitor_describe());
	test_in_child(robbed_reader);
}
