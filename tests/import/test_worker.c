/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_dmabuf.h"
#include "harness.h"
#include "import/import.h"
#include "process.h"
#include "thread_fixture.h"

#define PAGE 4096
#define BOTH (IMPORT_READ | IMPORT_WRITE)

struct result {
	atomic_int calls;
	atomic_int error;
};

static void result_note(void *arg, int error)
{
	struct result *r = arg;

	r->error = error;
	r->calls++;
}

static bool result_has_come(void *r)
{
	return ((struct result *)r)->calls;
}

/* Waits for the first call of @r.  Returns the number of calls. */
static int result_wait(struct result *r)
{
	process_settles(result_has_come, r);
	return r->calls;
}

static struct import_region *region_create(int *fd)
{
	struct import_region *r = NULL;
	struct import_desc desc = { IMPORT_DMABUF, fd, PAGE, BOTH, false, 0 };

	*fd = fake_dmabuf_open(PAGE, O_RDWR);
	EXPECT_EQ(import_get(&desc, &r), 0);
	return r;
}

static const unsigned int access_both[2] = { BOTH, BOTH };

TEST(begin, "Every region is begun, and then done is called once.")
{
	int fds[2], starts = fake_dmabuf.starts;
	struct import_region *regions[2] = { region_create(&fds[0]), region_create(&fds[1]) };
	struct result begun = { 0 };

	EXPECT_EQ(import_begin_async(regions, access_both, 2, result_note, &begun), 0);
	EXPECT_EQ(result_wait(&begun), 1);
	EXPECT_EQ(begun.error, 0);
	EXPECT_EQ(fake_dmabuf.starts, starts + 2);
	for (int i = 0; i < 2; i++) {
		import_put(regions[i]);
		close(fds[i]);
	}
}

TEST(closed_descriptor,
     "A new file with the number of a dma-buf's closed descriptor is not waited for.")
{
	struct result begun = { 0 };
	int fd, pipe_fds[2];
	struct import_region *r = region_create(&fd);

	EXPECT_EQ(pipe(pipe_fds), 0);
	EXPECT_EQ(dup2(pipe_fds[0], r->fd), r->fd);
	EXPECT_EQ(import_begin_async(&r, access_both, 1, result_note, &begun), 0);
	EXPECT_EQ(result_wait(&begun), 1);
	EXPECT_EQ(begun.error, -EIO);
	close(r->fd);
	import_put(r);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	close(fd);
}

TEST(slow_fence,
     "A buffer with an unsignalled fence delays no other buffer, and is begun after the signal.")
{
	int slow_fd, fast_fd;
	struct import_region *slow = region_create(&slow_fd), *fast = region_create(&fast_fd);
	struct result slow_done = { 0 }, fast_done = { 0 };

	fake_dmabuf.fence_fd = slow_fd;
	EXPECT_EQ(import_begin_async(&slow, access_both, 1, result_note, &slow_done), 0);
	EXPECT_EQ(import_begin_async(&fast, access_both, 1, result_note, &fast_done), 0);
	EXPECT_EQ(result_wait(&fast_done), 1);
	EXPECT(process_settles(process_is_quiet, NULL));
	EXPECT_EQ(slow_done.calls, 0);
	fake_dmabuf.fence_fd = -1;
	EXPECT_EQ(result_wait(&slow_done), 1);
	import_put(slow);
	import_put(fast);
	close(slow_fd);
	close(fast_fd);
}

/* Runs in a child; the result is the exit status. */
static int wait_for_fence(void)
{
	struct result result = { 0 };
	struct import_region *r;
	int fd;

	alarm(TEST_HANG_S);
	r = region_create(&fd);
	fake_dmabuf.fence_fd = fd;
	if (import_begin_async(&r, access_both, 1, result_note, &result))
		return 1;
	fake_dmabuf.fence_fd = -1;
	if (!result_wait(&result))
		return 1;
	import_put(r);
	close(fd);
	return 0;
}

TEST(after_fork, "A child of fork() waits for fences, too.")
{
	int status = -1;
	pid_t child;

	EXPECT_EQ(wait_for_fence(), 0);
	child = fork();
	if (!child)
		_exit(wait_for_fence());
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	alarm(0);
}

TEST(failed_begin, "A failed begin reports the error, and ends the regions begun before.")
{
	int fd, starts = fake_dmabuf.starts;
	struct import_region *r = region_create(&fd);
	struct result failed = { 0 };

	fake_dmabuf.error = EIO;
	EXPECT_EQ(import_begin_async(&r, access_both, 1, result_note, &failed), 0);
	EXPECT_EQ(result_wait(&failed), 1);
	EXPECT_EQ(failed.error, -EIO);
	fake_dmabuf.error = 0;
	EXPECT_EQ(fake_dmabuf.starts, starts);
	import_put(r);
	close(fd);
}

TEST(half_begun, "Regions that were begun before an error are ended again.")
{
	int fds[2], starts = fake_dmabuf.starts, ends = fake_dmabuf.ends;
	struct import_region *regions[2] = { region_create(&fds[0]), region_create(&fds[1]) };
	struct result failed = { 0 };

	fake_dmabuf.successes = 1;
	fake_dmabuf.error = EIO;
	EXPECT_EQ(import_begin_async(regions, access_both, 2, result_note, &failed), 0);
	EXPECT_EQ(result_wait(&failed), 1);
	EXPECT_EQ(failed.error, -EIO);
	EXPECT_EQ(fake_dmabuf.starts, starts + 1);
	EXPECT_EQ(fake_dmabuf.ends, ends + 1);
	for (int i = 0; i < 2; i++) {
		import_put(regions[i]);
		close(fds[i]);
	}
}

static void *worker_hammer(void *arg)
{
	struct import_region *r = arg;
	struct result results[50] = { 0 };

	for (int i = 0; i < 50; i++)
		import_begin_async(&r, access_both, 1, result_note, &results[i]);
	for (int i = 0; i < 50; i++)
		if (result_wait(&results[i]) != 1 || results[i].error)
			return (void *)1;
	return NULL;
}

TEST(many_threads, "Eight threads get each answer once.")
{
	pthread_t threads[8];
	void *failed, *any = NULL;
	int fd;
	struct import_region *r = region_create(&fd);

	for (int i = 0; i < 8; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, worker_hammer, r), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], &failed);
		any = failed ? failed : any;
	}
	EXPECT(!any);
	import_put(r);
	close(fd);
}

static pthread_t handled_by;
static atomic_int handled;

static void signal_handle(int number)
{
	(void)number;
	handled_by = pthread_self();
	handled = 1;
}

/* The test's thread blocks the signal, so only the worker could handle the signal. */
TEST(signals, "A signal to the process is never handled on the worker thread.")
{
	const struct sigaction action = { .sa_handler = signal_handle };
	struct result slow_done = { 0 };
	int fd;
	struct import_region *slow = region_create(&fd);
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	EXPECT_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	fake_dmabuf.fence_fd = fd;
	EXPECT_EQ(import_begin_async(&slow, access_both, 1, result_note, &slow_done), 0);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	kill(getpid(), SIGUSR1);
	fake_dmabuf.fence_fd = -1;
	EXPECT_EQ(result_wait(&slow_done), 1);
	EXPECT(!handled);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	EXPECT(handled && pthread_equal(handled_by, pthread_self()));
	import_put(slow);
	close(fd);
}

struct cancelled {
	struct import_region *region;
	struct result begun;
	atomic_bool returned;
};

/* A bracket with an unsignalled fence passes poll(), a cancellation point. */
static void *bracket_cancelled(void *arg)
{
	struct cancelled *c = arg;

	pthread_cancel(pthread_self());
	import_begin_async(&c->region, access_both, 1, result_note, &c->begun);
	atomic_store(&c->returned, true);
	return NULL;
}

static void worker_start_waiting(void *arg)
{
	static struct result result;

	EXPECT_EQ(import_begin_async(arg, access_both, 1, result_note, &result), 0);
}

static const struct thread_creator *worker_creator;

static void worker_started_by_creator(void)
{
	struct import_region *r;
	int fd;

	r = region_create(&fd);
	fake_dmabuf.fence_fd = fd;
	thread_fixture_check(worker_creator, worker_start_waiting, &r, "climport-sync");
}

TEST_EACH(worker_free, struct thread_creator, thread_creators,
	  "The worker has the processors and the nice value of the process and an ordinary policy, "
	  "whatever the thread that starts the worker has.")
{
	worker_creator = row;
	test_in_child(worker_started_by_creator);
}

TEST(cancelled, "A cancelled thread is not cancelled inside a bracket.")
{
	static struct cancelled c;
	pthread_t thread;
	int fd;

	c.region = region_create(&fd);
	fake_dmabuf.fence_fd = fd;
	EXPECT_EQ(pthread_create(&thread, NULL, bracket_cancelled, &c), 0);
	pthread_join(thread, NULL);
	EXPECT(c.returned);
	fake_dmabuf.fence_fd = -1;
	EXPECT_EQ(result_wait(&c.begun), 1);
	import_put(c.region);
	close(fd);
}
