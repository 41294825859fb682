/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client and the devices of RM, with threads, children, and programs that close climport's
 * descriptors.  A process has a single client, and a single device for each GPU.
 */
#include "rm_fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "import/nvidia/rm/rm_client.h"

enum { THREADS = 8, ROUNDS = 20 };

RM_TEST(kept_client, "The client and the device of the first import serve all imports.")
{
	for (int i = 0; i < 5; i++)
		rm_import_works(0);
	EXPECT_EQ(fake_rm.clients_made, 1);
	EXPECT_EQ(fake_rm.devices_made, 1);
	rm_expect_kept(1, 1);
}

static int rm_failures_of_threads;

static void *rm_import_on_thread(void *number)
{
	int gpu = (int)((intptr_t)number % 2);
	char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < ROUNDS; i++) {
		int fd;

		if (rm_import_host(rm_uuid[gpu], p, SIZE, &fd))
			__atomic_add_fetch(&rm_failures_of_threads, 1, __ATOMIC_RELAXED);
		else
			close(fd);
	}
	munmap(p, SIZE);
	return NULL;
}

RM_TEST(threads, "If threads make a client and devices at once, a single client and a device for "
		 "each GPU survive.")
{
	rm_failures_of_threads = 0;
	for (int round = 0; round < 10; round++) {
		process_run_threads(THREADS, rm_import_on_thread);
		EXPECT_EQ(rm_failures_of_threads, 0);
		rm_expect_kept(1, 2);
		rm_forget();
	}
}

/* A thread that imports while another makes the device, with a release that gives one device. */
static struct {
	pthread_t thread;
	atomic_int id; /* 0: the thread does not run yet */
	atomic_bool has_ended;
} rm_second;

static void rm_second_prepare(void)
{
	rm_second.id = 0;
	rm_second.has_ended = false;
	fake_rm.release.has_one_device = true;
	fake_rm.hook_name = "device";
}

static void *rm_import_second(void *unused)
{
	rm_second.id = gettid();
	rm_import_works(0);
	rm_second.has_ended = true;
	return unused;
}

/* The second thread has nothing to do but to wait. */
static bool rm_second_waits(void *unused)
{
	char path[64], line[256] = "";
	const char *state;
	FILE *file;

	(void)unused;
	if (!rm_second.id || rm_second.has_ended)
		return rm_second.has_ended;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)rm_second.id);
	file = fopen(path, "re");
	if (!file)
		return false;
	state = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return state && !strncmp(state, ") S", 3);
}

static void rm_start_second(void)
{
	fake_rm.hook_name = NULL;
	EXPECT(!pthread_create(&rm_second.thread, NULL, rm_import_second, NULL));
	EXPECT(process_settles(rm_second_waits, NULL));
}

RM_TEST(one_device, "While a thread makes a device, an import of another thread waits for the "
		    "device: releases before 575 give a client one device of a GPU.")
{
	rm_second_prepare();
	fake_rm.hook = rm_start_second;
	rm_import_works(0);
	EXPECT(!pthread_join(rm_second.thread, NULL));
	EXPECT_EQ(fake_rm.devices_made, 1);
	rm_expect_kept(1, 1);
}

static void rm_fail_device(void)
{
	rm_start_second();
	rm_fail("device", 1, 0, 0x51);
}

RM_TEST(one_device_fails, "If a thread fails to make a device, a thread that waits makes one.")
{
	rm_second_prepare();
	fake_rm.hook = rm_fail_device;
	EXPECT_EQ(rm_try(rm_pages(SIZE), SIZE), -ENOMEM);
	EXPECT(!pthread_join(rm_second.thread, NULL));
	EXPECT_EQ(fake_rm.devices_made, 1);
	rm_expect_kept(1, 1);
}

RM_TEST(closed_control,
	"If the program closes the client's descriptor, the next import makes a client.")
{
	rm_import_works(0);
	EXPECT_EQ(close(fake_rm_descriptor(0)), 0);
	rm_import_works(0);
	EXPECT_EQ(fake_rm.clients_made, 2);
	EXPECT_EQ(fake_rm.devices_made, 2);
	for (int node = 0; node <= 1; node++)
		rm_close_all(node);
}

RM_TEST(closed_node, "If the program closes a device's node, the next import makes a device.")
{
	rm_import_works(0);
	EXPECT_EQ(close(fake_rm_descriptor(1)), 0);
	rm_import_works(0);
	EXPECT_EQ(fake_rm.clients_made, 1);
	EXPECT_EQ(fake_rm.devices_made, 2);
	for (int node = 0; node <= 1; node++)
		rm_close_all(node);
}

/* The number of the anchor, which is the second control node of the process. */
static int rm_find_anchor(void)
{
	struct fake_opaque opaque;

	for (int fd = 0; fd < 1000; fd++)
		if (fake_opaque_read(fd, &opaque) && opaque.size == PAGE)
			return fd;
	return -1;
}

RM_TEST(closed_anchor, "If the program closes a device's anchor, imports work on.")
{
	rm_import_works(0);
	EXPECT_EQ(close(rm_find_anchor()), 0);
	rm_import_works(0);
	EXPECT_EQ(fake_rm.devices_made, 1);
	EXPECT_EQ(fake_rm_held().memories, 0);
	for (int node = 0; node <= 1; node++)
		rm_close_all(node);
}

RM_TEST(closed_all, "After closefrom() of the program an import makes a client and a device.")
{
	rm_import_works(0);
	rm_import_works(1);
	closefrom(3);
	rm_expect_kept(0, 0);
	rm_import_works(0);
	rm_expect_kept(1, 1);
	EXPECT_EQ(fake_rm.clients_made, 2);
}

/* Nodes that the program opens, like CUDA, at the numbers of climport's closed nodes. */
static const struct rm_reuse {
	const char *name, *path;
	int node;
	unsigned int clients, devices;
} rm_reuses[] = {
	{ "control", "/dev/nvidiactl", 0, 2, 2 },
	{ "node", "/dev/nvidia4", 1, 1, 2 },
};

TEST_EACH(reused, struct rm_reuse, rm_reuses,
	  "If the program closes a descriptor of climport's and opens the same node at the number, "
	  "the program's descriptor is left alone.")
{
	int fd, mine;

	rm_begin();
	rm_import_works(0);
	fd = fake_rm_descriptor(row->node);
	EXPECT_EQ(close(fd), 0);
	mine = open(row->path, O_RDWR | O_CLOEXEC);
	EXPECT_EQ(mine, fd);
	rm_import_works(0);
	EXPECT_EQ(fake_rm.clients_made, row->clients);
	EXPECT_EQ(fake_rm.devices_made, row->devices);
	EXPECT_EQ(close(mine), 0);
	for (int node = 0; node <= 1; node++)
		rm_close_all(node);
	rm_end();
}

static char *rm_child_pages;

/* The status of a child that imports: 0 if the child has made a client. */
static int rm_run_child(void)
{
	unsigned int before = fake_rm.clients_made;
	int fd;

	if (rm_import_host(rm_uuid[0], rm_child_pages, SIZE, &fd))
		return 1;
	if (fake_rm.inherited || fake_rm.misuses || fake_rm.clients_made != before + 1)
		return 2;
	close(fd);
	if (rm_import_host(rm_uuid[0], rm_child_pages, SIZE, &fd))
		return 3;
	return fake_rm.clients_made == before + 1 ? 0 : 4;
}

static int rm_fork_child(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(rm_run_child());
	waitpid(child, &status, 0);
	return status;
}

RM_TEST(child, "A child makes a new client, and the parent's client still serves the parent.")
{
	rm_child_pages = rm_pages(SIZE);
	rm_import_works(0);
	EXPECT_EQ(rm_fork_child(), 0);
	rm_import_works(0);
	EXPECT_EQ(fake_rm.clients_made, 1);
	rm_expect_kept(1, 1);
}

static int rm_child_status;

static void rm_fork_in_making(void)
{
	fake_rm.hook_name = NULL;
	rm_child_status = rm_fork_child();
}

RM_TEST(child_in_making, "A child that is forked while a device is made makes a new device.")
{
	rm_child_pages = rm_pages(SIZE);
	fake_rm.hook_name = "device";
	fake_rm.hook = rm_fork_in_making;
	rm_import_works(0);
	EXPECT_EQ(rm_child_status, 0);
	EXPECT_EQ(fake_rm.devices_made, 1);
	rm_expect_kept(1, 1);
}

static atomic_bool rm_must_stop;

static void *rm_import_until_stopped(void *unused)
{
	(void)unused;
	while (!rm_must_stop)
		rm_import_works(0);
	return NULL;
}

RM_TEST(fork_among_threads, "A child that is forked while threads import makes a new client.")
{
	pthread_t thread[2];

	rm_child_pages = rm_pages(SIZE);
	rm_must_stop = false;
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(pthread_create(&thread[i], NULL, rm_import_until_stopped, NULL), 0);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(rm_fork_child(), 0);
	rm_must_stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	rm_expect_kept(1, 1);
}

/* An import while the process can open @more descriptors: the descriptor or a negative errno. */
static int rm_try_with_descriptors(char *memory, int more)
{
	int filling[64], filled = 0, ret;
	struct rlimit before;

	process_limit_descriptors(48, &before);
	while ((filling[filled] = open("/dev/null", O_RDONLY)) >= 0)
		filled++;
	EXPECT(filled >= more);
	for (int i = 0; i < more; i++)
		close(filling[--filled]);
	ret = rm_try(memory, SIZE);
	setrlimit(RLIMIT_NOFILE, &before);
	while (filled)
		close(filling[--filled]);
	return ret;
}

RM_TEST(no_descriptors, "For each lack of a descriptor in a first import the error is -EMFILE, and "
			"nothing is left behind.")
{
	char *p = rm_pages(SIZE);
	int ret;

	rm_import_works(0); /* opens the process's maps */
	for (int node = 0; node <= 1; node++)
		rm_close_all(node);
	for (int more = 0; more < 4; more++) { /* client, node, anchor, descriptor */
		EXPECT_EQ(rm_try_with_descriptors(p, more), -EMFILE);
		rm_expect_kept(more > 0, more > 2);
		rm_close_all(0);
		rm_close_all(1);
	}
	ret = rm_try_with_descriptors(p, 4);
	EXPECT(ret >= 0);
	close(ret);
	rm_expect_kept(1, 1);
}

static void *rm_import_on_small_stack(void *memory)
{
	int fd = rm_try(memory, SIZE);

	close(fd);
	return fd >= 0 ? memory : NULL;
}

RM_TEST(small_stack, "A first import needs a stack of 16 KiB at most.")
{
	char *p = rm_pages(SIZE);
	pthread_attr_t attr;
	pthread_t thread;
	void *result;

	pthread_attr_init(&attr);
	EXPECT_EQ(pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN) + 16384),
		  0);
	EXPECT_EQ(pthread_create(&thread, &attr, rm_import_on_small_stack, p), 0);
	EXPECT_EQ(pthread_join(thread, &result), 0);
	EXPECT(result == p);
	pthread_attr_destroy(&attr);
}

/* Objects that a client has made, as in a process that has imported for weeks. */
static void rm_set_last_handle(uint32_t last)
{
	struct rm_client *client;

	EXPECT_EQ(rm_client_get(&client), 0);
	atomic_store(&client->last, last);
}

static const struct rm_last {
	const char *name;
	uint32_t last;
} rm_lasts[] = {
	{ "end", UINT32_MAX - 2 },
	{ "half", 0x7ffffffd },
	{ "of_the_device", 0xcaf00000 - 2 },
	{ "of_the_client", 0xc1d00000 - 2 },
};

TEST_EACH(many_objects, struct rm_last, rm_lasts,
	  "After any number of imports an import works, and leaves no object behind.")
{
	rm_begin();
	rm_import_works(0);
	rm_set_last_handle(row->last);
	for (int i = 0; i < 5; i++) {
		rm_import_works(0);
		close(rm_try_dmabuf());
	}
	rm_expect_kept(1, 1);
	rm_end();
}

RM_TEST(taken_handles, "If objects live on that RM did not free, imports work after any number of "
		       "imports.")
{
	rm_import_works(0);
	rm_set_last_handle(100);
	rm_fail("free", 1, 0, 0x56);
	fake_rm.fail_times = 4;
	for (int i = 0; i < 2; i++) {
		rm_import_works(0);
		close(rm_try_dmabuf());
	}
	EXPECT_EQ(fake_rm_held().objects, 4);
	for (int i = 0; i < 3; i++) {
		int fd;

		rm_set_last_handle(100);
		rm_import_works(0);
		rm_set_last_handle(100);
		fd = rm_try_dmabuf();
		EXPECT(fd >= 0);
		close(fd);
	}
	EXPECT_EQ(fake_rm_held().objects, 4);
	for (int node = 0; node <= 1; node++)
		rm_close_all(node);
}
