/* SPDX-License-Identifier: Apache-2.0 */
/* The memory monitor on systems that refuse one of its system calls. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "monitor_fixture.h"
#include "process.h"
#include "refused_userfaultfd.h"

#define SIZE ((size_t)1 << 20)

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
	  "userfaultfd(2) is older than Linux 5.18, or has no write protection" },
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

static const struct refusal without_descriptor[] = {
	{ "close_range", { SYS_close_range, EPERM, 0 }, "" },
	{ "pidfd_open", { SYS_pidfd_open, EPERM, 0 }, "" },
	{ "pidfd_getfd", { SYS_pidfd_getfd, EPERM, 0 }, "" },
};

/* The program could close the descriptor of a reader without a table of its own. */
static void reader_refused(void)
{
	struct watch watch;
	char *p;

	if (!monitor_is_available())
		test_skip("%s", monitor_describe());
	refused_call = refusal_row->call;
	p = monitor_fixture_map(SIZE);
	EXPECT_EQ(monitor_watch((uintptr_t)p, SIZE, &watch), -EOPNOTSUPP);
	EXPECT(refused_call.count > 0);
	EXPECT(!monitor_is_available());
	EXPECT_EQ(monitor_fixture_count(gettid(), "userfaultfd"), 0);
	EXPECT(!munmap(p, PAGE));
}

TEST_EACH(reader, struct refusal, without_descriptor,
	  "Without a table of descriptors for the reader no memory is watched.")
{
	refusal_row = row;
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
