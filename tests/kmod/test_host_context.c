/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of host memory: processes that may use a context, mappings of dma-bufs, slots and their
 * generations.
 */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void other_process(void *arg)
{
	int ctx = *(int *)arg;
	unsigned char *p = pages_new(PAGE, 1);
	struct gdmabuf_caps caps = { .size = sizeof(caps) };

	if (gdm_export_host(ctx, p, PAGE, 0, NULL) != -EACCES)
		_exit(1);
	if (gdm_call(ctx, GDMABUF_CAPS, &caps) != -EACCES)
		_exit(2);
	if (mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ctx, 0) != MAP_FAILED || errno != EACCES)
		_exit(3);
}

TEST(host_context_inherited, "Every call on a context inherited by fork() fails with EACCES.")
{
	int ctx = gdm_open();

	EXPECT_EQ(in_child(other_process, &ctx), 0);
	close(ctx);
}

TEST(host_context_same_memory,
     "After vfork() a call of the child on the parent's context fails with EACCES, although the "
     "memory is shared.")
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	int ctx = gdm_open(), status;
	pid_t pid = vfork();

	if (!pid)
		_exit(gdm_call(ctx, GDMABUF_CAPS, &caps) == -EACCES ? 0 : 1);
	EXPECT(pid > 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	close(ctx);
}

static void receive_and_check(void *arg)
{
	int *sockets = arg;
	unsigned char *view;
	int fd = receive_fd(sockets[1]), ctx = gdm_open();
	struct gdmabuf_query q = gdm_query(ctx, fd);

	if (q.out_kind != GDMABUF_KIND_HOST || q.out_length != LENGTH || q.out_address ||
	    q.out_slot)
		_exit(1);
	view = dmabuf_map(fd, LENGTH, PROT_READ | PROT_WRITE);
	if (!view || pattern_mismatches(view, LENGTH))
		_exit(2);
	view[0] = 33;
}

TEST(host_other_process,
     "A dma-buf works in the process that receives the descriptor, and a query from there shows "
     "no address.")
{
	int ctx = gdm_open(), sockets[2];
	unsigned char *p = pages_new(LENGTH, 1);
	struct gdm_export e;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &e), 0);
	send_fd(sockets[0], e.fd);
	EXPECT_EQ(in_child(receive_and_check, sockets), 0);
	EXPECT_EQ(p[0], 33);
	close(e.fd);
	close(ctx);
}

TEST(host_mmap_private, "A private mapping of a dma-buf is refused.")
{
	struct setup s = host_test_begin(1, 0);

	EXPECT(mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, s.e.fd, 0) == MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	/* A single page: the kernel itself may refuse a private mapping of several runs. */
	EXPECT(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, s.e.fd, 0) == MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	host_test_end(&s);
}

TEST(host_mmap_part,
     "A mapping with an offset shows a part of the dma-buf; a mapping beyond the end is refused.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, s.e.fd, 9 * PAGE);

	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(memcmp(view, s.p + 9 * PAGE, 2 * PAGE), 0);
	EXPECT(mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, s.e.fd, LENGTH - PAGE) == MAP_FAILED);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, s.e.fd, LONG_MAX & ~0xfffL) == MAP_FAILED);
	host_test_end(&s);
}

TEST(host_mapping_split,
     "A mapping that is split, moved and partly unmapped shows the right pages.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.e.fd, LENGTH, PROT_READ), *moved;

	munmap(view + 4 * PAGE, PAGE);
	moved = mremap(view + 8 * PAGE, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       pages_new(8 * PAGE, 0));
	EXPECT(moved != MAP_FAILED);
	EXPECT_EQ(memcmp(moved, s.p + 8 * PAGE, 8 * PAGE), 0);
	EXPECT_EQ(memcmp(view, s.p, 4 * PAGE), 0);
	EXPECT(mremap(moved, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	host_test_end(&s);
}

TEST(host_status_read_only, "The status page can be neither mapped for writing nor made writable.")
{
	int ctx = gdm_open();
	void *status = (void *)(uintptr_t)gdm_status(ctx);

	EXPECT(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ctx, 0) == MAP_FAILED);
	EXPECT_EQ(errno, EACCES);
	EXPECT_EQ(mprotect(status, PAGE, PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(errno, EACCES);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, ctx, 0) == MAP_FAILED);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ctx, 4 * PAGE) == MAP_FAILED);
	close(ctx);
}

TEST(host_generations, "A new pin in a used slot has a new generation.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(PAGE, 1);
	struct gdm_export a, b;

	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &a), 0);
	close(a.fd);
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &b), 0);
	close(b.fd);
	EXPECT_EQ(a.slot, b.slot);
	EXPECT(a.generation != b.generation);
	close(ctx);
}

TEST(host_slots_idle, "If every slot is in use, an export evicts an idle pin.")
{
	int ctx = gdm_open(), n = 0, err = 0;
	unsigned char *p = pages_new((size_t)4200 * PAGE, 0);

	for (; n < 4200 && !err; n++)
		err = gdm_export_host(ctx, p + (size_t)n * PAGE, PAGE, GDMABUF_KEEP, NULL);
	EXPECT_EQ(err, 0);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, 4096);
	EXPECT_EQ(gdm_stats(ctx).out_evictions, 4200 - 4096);
	close(ctx);
	munmap(p, (size_t)4200 * PAGE);
}

TEST(host_slots_exhausted, "If dma-bufs use every slot, an export fails with ENOSPC.")
{
	enum { SLOTS = 4096 };
	static struct gdm_export e[SLOTS];
	struct rlimit limit = { SLOTS + 100, SLOTS + 100 };
	unsigned char *p = pages_new((size_t)(SLOTS + 1) * PAGE, 0);
	int ctx = gdm_open();

	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (size_t i = 0; i < SLOTS; i++)
		EXPECT_EQ(gdm_export_host(ctx, p + i * PAGE, PAGE, 0, &e[i]), 0);
	EXPECT_EQ(gdm_export_host(ctx, p + (size_t)SLOTS * PAGE, PAGE, 0, NULL), -ENOSPC);
	EXPECT_EQ(gdm_stats(ctx).out_host_pins, SLOTS);
	close(e[7].fd);
	EXPECT_EQ(gdm_export_host(ctx, p + (size_t)SLOTS * PAGE, PAGE, 0, &e[7]), 0);
	EXPECT_EQ(e[7].slot, 7);
	for (size_t i = 0; i < SLOTS; i++)
		close(e[i].fd);
	close(ctx);
	munmap(p, (size_t)(SLOTS + 1) * PAGE);
}

/* The number of contexts that debugfs lists. */
static int count_contexts(void)
{
	FILE *f = fopen("/sys/kernel/debug/gdmabuf/contexts", "r");
	char line[128];
	int n = 0;

	EXPECT(f);
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, "process ", 8);
	fclose(f);
	return n;
}

TEST(host_failed_context, "A context whose only export failed is gone after the close.")
{
	int ctx = gdm_open(), before;

	total_settled("host-pins");
	before = count_contexts();
	EXPECT_EQ(gdm_export_host(ctx, NULL, PAGE, 0, NULL), -EFAULT);
	close(ctx);
	EXPECT_EQ(count_contexts(), before - 1);
}

static void export_for_ever(void *arg)
{
	enum { BIG = 128 << 20 };
	unsigned char *p = pages_new(BIG, 0);
	int ctx = gdm_open();

	memset(p, 1, BIG);
	EXPECT_EQ(write(*(int *)arg, "", 1), 1);
	for (;;)
		if (gdm_export_host(ctx, p, BIG, 0, NULL))
			_exit(1);
}

TEST(host_killed, "A process killed while pinning leaves no page pinned.")
{
	long long before = total_settled("host-bytes");

	for (int i = 0; i < 8; i++) {
		int pipes[2], status;
		pid_t child;
		char byte;

		EXPECT_EQ(pipe(pipes), 0);
		child = fork();
		if (!child)
			export_for_ever(&pipes[1]);
		EXPECT_EQ(read(pipes[0], &byte, 1), 1);
		/* time: noise, the kill comes at any point of the export */
		usleep(1000 + 1700 * (unsigned int)i);
		EXPECT_EQ(kill(child, SIGKILL), 0);
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		close(pipes[0]);
		close(pipes[1]);
	}
	EVENTUALLY(gdm_read_total("host-bytes") == before);
}

static int module_users(void)
{
	FILE *f = fopen("/sys/module/gdmabuf/refcnt", "r");
	int n = -1;

	EXPECT(f);
	EXPECT_EQ(fscanf(f, "%d", &n), 1);
	fclose(f);
	return n;
}

TEST(host_rmmod_busy, "A context, a dma-buf and a mapping each keep the module loaded.")
{
	unsigned char *p = pages_new(PAGE, 1), *view;
	int before = module_users(), ctx = gdm_open();
	struct gdm_export e;

	EXPECT_EQ(module_users(), before + 1);
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &e), 0);
	close(ctx);
	EXPECT_EQ(module_users(), before + 1);
	view = dmabuf_map(e.fd, PAGE, PROT_READ);
	close(e.fd);
	EXPECT_EQ(module_users(), before + 1);
	munmap(view, PAGE);
	EVENTUALLY(module_users() == before);
}

TEST(host_generations_run_out, "A slot without unused generations is never used again.")
{
	int ctx = gdm_open();
	unsigned char *p = pages_new(PAGE, 1);
	struct gdm_export e, last = { 0 };
	FILE *f = fopen("/sys/module/gdmabuf/parameters/first_generation", "r");
	unsigned int first = 0;

	EXPECT(f && fscanf(f, "%u", &first) == 1);
	fclose(f);
	if (first < 0xfffffff0)
		test_skip("needs the module's first_generation=4294967290");
	for (int i = 0; i < 20; i++) {
		EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &e), 0);
		close(e.fd);
		EXPECT(e.generation >= first);
		EXPECT(e.slot > last.slot || e.generation > last.generation);
		last = e;
	}
	EXPECT(last.slot > 0);
	close(ctx);
}
