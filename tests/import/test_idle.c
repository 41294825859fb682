/* SPDX-License-Identifier: Apache-2.0 */
/* How the idle thread starts. */
#include <stdatomic.h>

#include "harness.h"
#include "process.h"
#include "thread_fixture.h"
#include "util/idle.h"

#define NAME "climport-idle"

static atomic_int idle_ticks;

static bool idle_count(void)
{
	idle_ticks++;
	return true;
}

static struct idle_watcher counter = { .tick = idle_count, .period_ms = 1 };

static void idle_start_counter(void *unused)
{
	(void)unused;
	EXPECT(idle_watch(&counter));
}

static const struct thread_creator *idle_creator;

static void idle_started_by_creator(void)
{
	thread_fixture_check(idle_creator, idle_start_counter, NULL, NAME);
}

TEST_EACH(idle_free, struct thread_creator, thread_creators,
	  "The idle thread has the processors and the nice value of the process and an ordinary "
	  "policy, whatever the thread that starts the idle thread has.")
{
	idle_creator = row;
	test_in_child(idle_started_by_creator);
}

TEST(idle_confined, "In a program that was started on one processor and with a nice value, the "
		    "idle thread has both.")
{
	if (!thread_fixture_is_confined("idle_confined"))
		return;
	idle_start_counter(NULL);
	thread_fixture_expect_free(NAME);
}
