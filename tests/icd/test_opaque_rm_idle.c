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
#include <time.h>
#include <unistd.h>

/* In memory that a child shares. */
static struct {
	atomic_int destroyed, parts, handled;
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

static void CL_CALLBACK idle_note_part(cl_mem mem, void *unused)
{
	(void)mem, (void)unused;
	idle_seen->parts++;
}

struct idle_end_of_part {
	int parts;
	long objects;
};

/* The layer's callback comes after the application's, and before the object goes. */
static bool idle_part_has_ended(void *arg)
{
	const struct idle_end_of_part *end = arg;

	return idle_seen->parts == end->parts && stub_live(STUB_MEM) <= end->objects;
}

/* The last use is a kernel's: the driver destroys the sub-buffer on a thread of its own. */
static void idle_release_in_use(cl_mem sub)
{
	cl_kernel kernel = fixture_create_increment(sub);
	cl_int err;
	cl_event gate = cl.clCreateUserEvent(fix.context, &err);
	struct idle_end_of_part end = { idle_seen->parts + 1, stub_live(STUB_MEM) - 1 };

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(sub, idle_note_part, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 1, &gate, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(sub), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseKernel(kernel), CL_SUCCESS);
	EXPECT_EQ(cl.clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseEvent(gate), CL_SUCCESS);
	EXPECT(process_settles(idle_part_has_ended, &end));
}

TEST(idle_not_needed, "An import ends before clReleaseMemObject() of its last sub-buffer returns.")
{
	idle_begin();
	EXPECT_EQ(cl.clReleaseMemObject(idle_create_part(idle_note, NULL)), CL_SUCCESS);
	EXPECT_EQ(idle_seen->destroyed, 1);
	idle_end();
}

static cl_mem idle_nested;

static void CL_CALLBACK idle_release_nested(cl_mem mem, void *unused)
{
	cl.clReleaseMemObject(idle_nested);
	idle_note(mem, unused);
}

TEST(idle_nested,
     "An import's destructor callback may release the last sub-buffer of another import.")
{
	idle_begin();
	stub_set(STUB_NO_CALLS_IN_CALLBACKS, 0);
	idle_nested = idle_create_part(idle_note, NULL);
	cl.clReleaseMemObject(idle_create_part(idle_release_nested, NULL));
	EXPECT_EQ(idle_seen->destroyed, 2);
	idle_end();
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
	idle_release_in_use(idle_create_part(idle_touch, page));
	EXPECT(process_settles(idle_is_destroyed, NULL));
	EXPECT_EQ(idle_seen->handled, 1);
	idle_end();
}

TEST(idle_fault, "A program's handler handles a fault in a destructor callback on the idle thread.")
{
	test_in_child(idle_run_fault);
}

/* For a thread that has done something.  Threads of the driver's may end meanwhile. */
static void idle_expect_no_thread(void)
{
	static char name[] = "climport-idle";

	EXPECT(process_settles(process_has_no_thread, name));
}

/* The end of the @nth import, which the idle thread sees to. */
static void idle_end_import(cl_mem sub, int nth)
{
	idle_release_in_use(sub);
	opaque_rm_settle(0);
	EXPECT_EQ(idle_seen->destroyed, nth);
}

static void idle_run_ends(void)
{
	idle_begin();
	for (int i = 1; i <= 2; i++) {
		idle_end_import(idle_create_part(idle_note, NULL), i);
		idle_expect_no_thread();
	}
	idle_end();
}

/* In processes without an idle thread of an earlier test. */
TEST(idle_ends, "The idle thread ends when it has nothing to do, and starts again when it has.")
{
	test_in_child(idle_run_ends);
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

static bool idle_two_are_destroyed(void *unused)
{
	(void)unused;
	return idle_seen->destroyed == 2;
}

static void idle_run_no_thread_late(void)
{
	pthread_attr_t attr;
	cl_mem sub;

	idle_begin();
	idle_end_import(idle_create_part(idle_note, NULL), 1);
	sub = idle_create_part(idle_note, NULL);
	idle_expect_no_thread();
	idle_refuse_threads(&attr);
	idle_release_in_use(sub);
	pthread_setattr_default_np(&attr);
	EXPECT_EQ(idle_seen->destroyed, 1);
	sub = idle_create_part(idle_note, NULL);
	EXPECT(process_settles(idle_two_are_destroyed, NULL));
	cl.clReleaseMemObject(sub);
	idle_end();
}

TEST(idle_no_thread_late,
     "If the idle thread cannot be started for the end of a sub-buffer, the import ends with a "
     "later call.")
{
	test_in_child(idle_run_no_thread_late);
}

static bool idle_driver_has_failed(void *unused)
{
	(void)unused;
	return stub_failed();
}

/* Ends after the driver's next failure. */
static void CL_CALLBACK idle_await_failure(cl_mem mem, void *unused)
{
	process_settles(idle_driver_has_failed, NULL);
	idle_note(mem, unused);
}

TEST(idle_shortage, "A call that meets a shortage waits for imports that are to end.")
{
	cl_mem sub;

	idle_begin();
	sub = idle_create_part(idle_await_failure, NULL);
	stub_fail("clCreateBufferWithProperties", 1, CL_OUT_OF_RESOURCES);
	idle_release_in_use(sub);
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), PAGE));
	EXPECT_EQ(idle_seen->destroyed, 1);
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

struct idle_handler;

/* Expects that a child that exits has destroyed a number of imports by then. */
static void idle_expect_at_exit(void (*child_exits)(const struct idle_handler *handler),
				const struct idle_handler *handler, int destroyed)
{
	pid_t child;

	opaque_rm_reset();
	idle_seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(stdout);
	child = fork();
	if (!child)
		child_exits(handler);
	EXPECT_EQ(waitpid(child, NULL, 0), child);
	EXPECT_EQ(idle_seen->destroyed, destroyed);
	munmap(idle_seen, PAGE);
}

/* In a child: exits with a destructor callback outstanding. */
static _Noreturn void idle_exit(const struct idle_handler *none)
{
	(void)none;
	opaque_rm_open();
	idle_release_in_use(idle_create_part(idle_note, NULL));
	exit(0);
}

TEST(idle_exit,
     "A process that exits right after the release of an import's last sub-buffer has the import's "
     "destructor callback called.")
{
	idle_expect_at_exit(idle_exit, NULL, 1);
}

static cl_mem idle_kept[2];

/* Static destructors of a program: exit handlers older than the layer's. */
static void idle_release_kept(void)
{
	cl.clReleaseMemObject(idle_kept[0]);
}

static void idle_release_kept_in_use(void)
{
	idle_release_in_use(idle_kept[0]);
	cl.clReleaseMemObject(idle_kept[1]);
}

static const struct idle_handler {
	const char *name;
	void (*run)(void);
	int imports;
} idle_handlers[] = {
	{ "released", idle_release_kept, 1 },
	{ "in_use", idle_release_kept_in_use, 2 },
};

static _Noreturn void idle_exit_late(const struct idle_handler *handler)
{
	EXPECT_EQ(atexit(handler->run), 0);
	opaque_rm_open();
	for (int i = 0; i < handler->imports; i++)
		idle_kept[i] = idle_create_part(idle_note, NULL);
	exit(0);
}

TEST_EACH(idle_exit_late, struct idle_handler, idle_handlers,
	  "Imports end that a program releases in an exit handler older than the first import.")
{
	idle_expect_at_exit(idle_exit_late, row, row->imports);
}

/* A driver that takes its time. */
static void CL_CALLBACK idle_note_slowly(cl_mem mem, void *unused)
{
	const struct timespec time = { 0, 3000000 };

	nanosleep(&time, NULL);
	idle_note(mem, unused);
}

TEST(idle_bound, "At most 16 imports wait for the idle thread.")
{
	int most = 0;

	idle_begin();
	for (int i = 1; i <= 50; i++) {
		idle_release_in_use(idle_create_part(idle_note_slowly, NULL));
		if (i - idle_seen->destroyed > most)
			most = i - idle_seen->destroyed;
	}
	EXPECT(most <= 16);
	idle_end();
}
