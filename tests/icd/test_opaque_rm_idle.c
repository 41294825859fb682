/* SPDX-License-Identifier: Apache-2.0 */
/* What the idle thread does for imports of the method opaque_fd, and when the thread ends. */
#include "opaque_rm_fixture.h"

#include <CL/climport.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* In memory that a child shares. */
static struct {
	atomic_int destroyed, handled;
} * idle_seen;

static void CL_CALLBACK idle_note(cl_mem mem, void *unused)
{
	(void)mem, (void)unused;
	idle_seen->destroyed++;
}

static bool idle_is_destroyed(void *unused)
{
	(void)unused;
	return idle_seen->destroyed > 0;
}

static void idle_begin(void)
{
	opaque_rm_reset();
	opaque_rm_open();
	idle_seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT(idle_seen != MAP_FAILED);
}

static void idle_end(void)
{
	opaque_rm_settle(0);
	opaque_rm_close();
	munmap(idle_seen, PAGE);
}

/* A sub-buffer whose import is released: the idle thread releases the driver's import at the end. */
static cl_mem idle_create_part(void(CL_CALLBACK *destroyed)(cl_mem mem, void *arg), void *arg)
{
	cl_mem mem = fixture_import_host(0, pages_map(3) + 2 * ALIGN, 2 * PAGE), sub;

	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(mem, destroyed, arg), CL_SUCCESS);
	sub = fixture_create_sub_buffer(mem, 0, ALIGN);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	return sub;
}

static _Thread_local sigjmp_buf idle_fault;

static void idle_handle(int signal)
{
	(void)signal;
	idle_seen->handled++;
	siglongjmp(idle_fault, 1);
}

static void CL_CALLBACK idle_touch(cl_mem mem, void *page)
{
	if (!sigsetjmp(idle_fault, 1))
		*(volatile char *)page = 1;
	idle_note(mem, NULL);
}

static void idle_run_fault(void)
{
	void *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = { .sa_handler = idle_handle };

	idle_begin();
	sigaction(SIGSEGV, &action, NULL);
	cl.clReleaseMemObject(idle_create_part(idle_touch, page));
	EXPECT(process_settles(idle_is_destroyed, NULL));
	EXPECT_EQ(idle_seen->handled, 1);
	idle_end();
}

TEST(idle_fault, "A program's handler handles a fault in a destructor callback on the idle thread.")
{
	test_in_child(idle_run_fault);
}

TEST(idle_ends, "The idle thread ends when it has nothing to do, and starts again when it has.")
{
	int before;

	idle_begin();
	before = process_count_threads();
	for (int i = 1; i <= 2; i++) {
		cl.clReleaseMemObject(idle_create_part(idle_note, NULL));
		opaque_rm_settle(0);
		EXPECT_EQ(idle_seen->destroyed, i);
		EXPECT(process_settles(process_threads_at_most, &before));
	}
	idle_end();
}

/* No address space has room for the stack of a thread. */
static void idle_refuse_threads(pthread_attr_t *before)
{
	pthread_attr_t large;

	pthread_getattr_default_np(before);
	pthread_attr_init(&large);
	pthread_attr_setstacksize(&large, (size_t)1 << 47);
	EXPECT_EQ(pthread_setattr_default_np(&large), 0);
	pthread_attr_destroy(&large);
}

TEST(idle_no_thread_late,
     "If the idle thread cannot be started for the end of a sub-buffer, the import ends with a "
     "later call.")
{
	pthread_attr_t attr;
	int before;
	cl_mem sub;

	idle_begin();
	before = process_count_threads();
	sub = idle_create_part(idle_note, NULL);
	EXPECT(process_settles(process_threads_at_most, &before));
	idle_refuse_threads(&attr);
	EXPECT_EQ(cl.clReleaseMemObject(sub), CL_SUCCESS);
	pthread_setattr_default_np(&attr);
	EXPECT_EQ(idle_seen->destroyed, 0);
	sub = idle_create_part(idle_note, NULL);
	EXPECT(process_settles(idle_is_destroyed, NULL));
	cl.clReleaseMemObject(sub);
	idle_end();
}

static void idle_run_no_thread(void)
{
	const cl_buffer_region region = { 0, ALIGN };
	pthread_attr_t attr;
	cl_int err;
	cl_mem mem;

	idle_begin();
	mem = fixture_import_host(0, pages_map(3) + 2 * ALIGN, 2 * PAGE);
	idle_refuse_threads(&attr);
	EXPECT(!cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err));
	pthread_setattr_default_np(&attr);
	EXPECT_EQ(err, CL_OUT_OF_RESOURCES);
	EXPECT(strstr(fix.notice, "cannot start the thread that calls drivers later"));
	cl.clReleaseMemObject(mem);
	idle_end();
}

/* In a process that has not started the thread yet. */
TEST(idle_no_thread, "If the idle thread cannot be started, a sub-buffer of an import fails with "
		     "CL_OUT_OF_RESOURCES.")
{
	test_in_child(idle_run_no_thread);
}

/* In a child: exits with a destructor callback outstanding. */
static _Noreturn void idle_exit(void(CL_CALLBACK *destroyed)(cl_mem mem, void *arg))
{
	opaque_rm_open();
	cl.clReleaseMemObject(idle_create_part(destroyed, NULL));
	exit(0);
}

TEST(idle_exit,
     "A process that exits right after the release of an import's last sub-buffer has the import's "
     "destructor callback called.")
{
	pid_t child;

	opaque_rm_reset();
	idle_seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(stdout);
	child = fork();
	if (!child)
		idle_exit(idle_note);
	EXPECT_EQ(waitpid(child, NULL, 0), child);
	EXPECT_EQ(idle_seen->destroyed, 1);
	munmap(idle_seen, PAGE);
}
