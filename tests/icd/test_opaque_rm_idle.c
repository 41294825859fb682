/* SPDX-License-Identifier: Apache-2.0 */
/* What the idle thread does for imports of the method opaque_fd, and when the thread ends. */
#include "opaque_rm_fixture.h"

#include <CL/climport.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
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
	opaque_begin();
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

/* No address space has room for the stack of a thread. */
static void idle_refuse_threads(pthread_attr_t *before)
{
	pthread_attr_t large;

	pthread_getattr_default_np(before);
	pthread_attr_init(&large);
	pthread_attr_setstacksize(&large, SIZE_MAX / 2 + 1);
	EXPECT_EQ(pthread_setattr_default_np(&large), 0);
	pthread_attr_destroy(&large);
}

static bool idle_has_thread(void *unused)
{
	(void)unused;
	return process_find_thread("climport-idle");
}

static cl_mem idle_kept[2];

/* The only thread for which the idle thread stays. */
static void *idle_create_and_end(void *unused)
{
	for (int i = 0; i < 2; i++)
		idle_kept[i] = idle_create_part(idle_note, NULL);
	EXPECT(process_settles(idle_has_thread, NULL));
	return unused;
}

/* An import that the idle thread was to end, and could not be started. */
static void idle_begin_late(pthread_attr_t *attr)
{
	static char name[] = "climport-idle";

	idle_begin();
	process_run_threads(1, idle_create_and_end);
	EXPECT(process_settles(process_has_no_thread, name));
	idle_refuse_threads(attr);
	idle_release_in_use(idle_kept[0]);
	EXPECT_EQ(idle_seen->destroyed, 0);
}

static void idle_run_no_thread_late(void)
{
	pthread_attr_t attr;
	cl_mem sub;

	idle_begin_late(&attr);
	pthread_setattr_default_np(&attr);
	sub = idle_create_part(idle_note, NULL);
	EXPECT(process_settles(idle_is_destroyed, NULL));
	cl.clReleaseMemObject(sub);
	cl.clReleaseMemObject(idle_kept[1]);
	idle_end();
}

TEST(idle_no_thread_late,
     "If the idle thread cannot be started for the end of a sub-buffer, the import ends with a "
     "later call.")
{
	test_in_child_of_thread(idle_run_no_thread_late);
}

static void idle_run_no_thread_ever(void)
{
	pthread_attr_t attr;

	idle_begin_late(&attr);
	cl.clReleaseMemObject(idle_kept[1]);
	EXPECT_EQ(idle_seen->destroyed, 2);
	pthread_setattr_default_np(&attr);
	idle_end();
}

TEST(idle_no_thread_ever,
     "If the idle thread cannot be started any more, the program's next release ends "
     "the imports that wait.")
{
	test_in_child_of_thread(idle_run_no_thread_ever);
}

static bool idle_driver_has_failed(void *unused)
{
	(void)unused;
	return stub_failed();
}

/* Ends when the driver has failed, and the call that met the failure waits. */
static void CL_CALLBACK idle_await_failure(cl_mem mem, void *unused)
{
	EXPECT(process_settles(idle_driver_has_failed, NULL));
	EXPECT(process_settles(process_is_quiet, NULL));
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

/* As a container may: with another error than a limit's. */
static void idle_forbid_threads(pthread_attr_t *unused)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	pthread_getattr_default_np(unused);
	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		test_skip("no filters of system calls");
}

static const struct idle_refusal {
	const char *name;
	void (*refuse)(pthread_attr_t *before);
} idle_refusals[] = {
	{ "limit", idle_refuse_threads },
	{ "filter", idle_forbid_threads },
}, *idle_refusal;

static void idle_run_no_thread(void)
{
	const cl_buffer_region region = { 0, ALIGN };
	pthread_attr_t attr;
	cl_int err;
	cl_mem mem;

	idle_begin();
	mem = fixture_import_host(0, pages_map(3) + 2 * ALIGN, 2 * PAGE);
	idle_refusal->refuse(&attr);
	EXPECT(!cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err));
	pthread_setattr_default_np(&attr);
	EXPECT_EQ(err, CL_OUT_OF_RESOURCES);
	EXPECT(strstr(fix.notice, "cannot start climport's thread climport-idle: "));
	cl.clReleaseMemObject(mem);
	idle_end();
}

/* In a process that has not started the thread yet. */
TEST_EACH(idle_no_thread, struct idle_refusal, idle_refusals,
	  "If the idle thread cannot be started, a sub-buffer of an import fails with "
	  "CL_OUT_OF_RESOURCES.")
{
	idle_refusal = row;
	test_in_child(idle_run_no_thread);
}

struct idle_handler;

/* Expects that a child that exits has destroyed a number of imports by then. */
static void idle_expect_at_exit(void (*child_exits)(const struct idle_handler *handler),
				const struct idle_handler *handler, int destroyed)
{
	int status = -1;
	pid_t child;

	opaque_rm_reset();
	idle_seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(stdout);
	child = fork();
	if (!child)
		child_exits(handler);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	/* The leak sanitizer takes the parent's threads for the child's. */
	EXPECT(!status || strcmp(SANITIZER, ""));
	EXPECT_EQ(idle_seen->destroyed, destroyed);
	munmap(idle_seen, PAGE);
}

/* In a child: exits with a destructor callback outstanding. */
static _Noreturn void idle_exit(const struct idle_handler *none)
{
	(void)none;
	opaque_begin();
	idle_release_in_use(idle_create_part(idle_note, NULL));
	exit(0);
}

TEST(idle_exit,
     "A process that exits right after the release of an import's last sub-buffer has the import's "
     "destructor callback called.")
{
	idle_expect_at_exit(idle_exit, NULL, 1);
}

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
	opaque_begin();
	for (int i = 0; i < handler->imports; i++)
		idle_kept[i] = idle_create_part(idle_note, NULL);
	exit(0);
}

TEST_EACH(idle_exit_late, struct idle_handler, idle_handlers,
	  "Imports end that a program releases in an exit handler older than the first import.")
{
	idle_expect_at_exit(idle_exit_late, row, row->imports);
}

/* A plugin of a program, which the program loads after the layer. */
static _Noreturn void idle_exit_library(const struct idle_handler *handler)
{
	void *library;

	opaque_begin();
	cl.clReleaseMemObject(idle_create_part(idle_note, NULL));
	library = dlopen(LATE_LIBRARY, RTLD_NOW);
	EXPECT(library);
	*(void (**)(void))dlsym(library, "late_library_end") = handler->run;
	for (int i = 0; i < handler->imports; i++)
		idle_kept[i] = idle_create_part(idle_note, NULL);
	exit(0);
}

TEST_EACH(idle_exit_library, struct idle_handler, idle_handlers,
	  "Imports end that a library releases in a destructor function after the layer's.")
{
	idle_expect_at_exit(idle_exit_library, row, 1 + row->imports);
}

static bool idle_all_are_destroyed(void *count)
{
	return idle_seen->destroyed == *(int *)count;
}

TEST(idle_many, "However many imports end on a thread of the driver, all end.")
{
	int count = 50;

	idle_begin();
	for (int i = 0; i < count; i++)
		idle_release_in_use(idle_create_part(idle_note, NULL));
	EXPECT(process_settles(idle_all_are_destroyed, &count));
	idle_end();
}

static atomic_bool idle_may_return;

static void CL_CALLBACK idle_stay(cl_mem mem, void *unused)
{
	(void)mem, (void)unused;
	idle_seen->parts++;
	while (!atomic_load(&idle_may_return))
		sched_yield();
}

static void *idle_release(void *sub)
{
	cl.clReleaseMemObject(sub);
	return NULL;
}

static bool idle_stays(void *unused)
{
	(void)unused;
	return idle_seen->parts == 1;
}

TEST(idle_beside, "A release that waits in a callback holds up the end of no other import.")
{
	pthread_t thread;
	cl_mem other, sub;

	idle_begin();
	atomic_store(&idle_may_return, false);
	other = idle_create_part(idle_note, NULL);
	sub = idle_create_part(idle_note, NULL);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(sub, idle_stay, NULL), CL_SUCCESS);
	EXPECT_EQ(pthread_create(&thread, NULL, idle_release, sub), 0);
	EXPECT(process_settles(idle_stays, NULL));
	idle_release_in_use(other);
	EXPECT(process_settles(idle_is_destroyed, NULL));
	EXPECT_EQ(idle_seen->destroyed, 1);
	atomic_store(&idle_may_return, true);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	idle_end();
}
