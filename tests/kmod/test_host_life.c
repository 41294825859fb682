/* SPDX-License-Identifier: Apache-2.0 */
/* How long the pages of a dma-buf live, when mappings change and when processes end. */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void change_munmap(unsigned char *p)
{
	munmap(p + PAGE, PAGE);
}

static void change_dontneed(unsigned char *p)
{
	EXPECT_EQ(madvise(p + PAGE, PAGE, MADV_DONTNEED), 0);
	EXPECT_EQ(p[PAGE], 0);
}

static void change_mremap(unsigned char *p)
{
	EXPECT(mremap(p, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, pages_new(LENGTH, 0)) !=
	       MAP_FAILED);
}

static void change_map_over(unsigned char *p)
{
	EXPECT(mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	       MAP_FAILED);
}

static const struct host_change {
	const char *name;
	void (*make)(unsigned char *p);
} host_changes[] = {
	{ "munmap", change_munmap },
	{ "dontneed", change_dontneed },
	{ "mremap", change_mremap },
	{ "map_over", change_map_over },
};

TEST_EACH(host_keeps, struct host_change, host_changes,
	  "Whatever the process does to the address, the dma-buf keeps the pages.")
{
	unsigned char *p = pages_new(LENGTH, 1), *view;
	int ctx = gdm_open(), fd;

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &fd), 0);
	row->make(p);
	EXPECT(mmap(p, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == p);
	memset(p, 0x5a, LENGTH);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(fd);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_new_pages, "An export of an address that got other pages shows these.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view;
	int fd;

	change_dontneed(s.p);
	s.p[PAGE] = 99;
	EXPECT_EQ(gdm_export_host(s.ctx, s.p, LENGTH, 0, &fd), 0);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	EXPECT_EQ(view[PAGE], 99);
	munmap(view, LENGTH);
	close(fd);
	host_test_end(&s);
}

static void child_writes(void *arg)
{
	*(unsigned char *)arg = 55;
}

TEST(host_fork, "After fork() the dma-buf shows the writes of the parent, and none of the child.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.fd, LENGTH, PROT_READ | PROT_WRITE);

	EXPECT_EQ(in_child(child_writes, s.p), 0);
	s.p[7] = 11;
	EXPECT_EQ(view[7], 11);
	EXPECT_EQ(view[0], pattern_at(0));
	munmap(view, LENGTH);
	host_test_end(&s);
}

static void child_uses_view(void *arg)
{
	unsigned char *view = arg;

	if (pattern_mismatches(view, LENGTH))
		_exit(1);
	view[PAGE] = 99;
}

TEST(host_fork_mapping,
     "A child inherits a mapping of a dma-buf of host memory, and shares the pages with the "
     "parent.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.fd, LENGTH, PROT_READ | PROT_WRITE);
	/* A single run: the kernel maps such a dma-buf by another path. */
	unsigned char *page = dmabuf_map(s.fd, PAGE, PROT_READ | PROT_WRITE);

	EXPECT(view && page);
	EXPECT_EQ(in_child(child_writes, page), 0);
	EXPECT_EQ(s.p[0], 55);
	page[0] = pattern_at(0);
	EXPECT_EQ(in_child(child_uses_view, view), 0);
	EXPECT_EQ(view[PAGE], 99);
	EXPECT_EQ(s.p[PAGE], 99);
	munmap(page, PAGE);
	munmap(view, LENGTH);
	host_test_end(&s);
}

/* The number after @name, in the first line of the file that begins with @name. */
static long long number_in(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	long long value = -1;
	char line[256];

	if (!f)
		test_skip("%s: %s", path, strerror(errno));
	while (value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			EXPECT_EQ(sscanf(line + strlen(name), "%lld", &value), 1);
	fclose(f);
	EXPECT(value >= 0);
	return value;
}

TEST(host_outlives_process,
     "A dma-buf keeps the pages, and nothing else, of an exporting process that has ended.")
{
	enum { CHILDREN = 100 };
	long long mms = number_in("/proc/slabinfo", "mm_struct ");
	long long kib = number_in("/proc/meminfo", "SUnreclaim:");
	struct pinner pinner = pinner_new(PAGE, CHILDREN * PAGE);
	int fds[CHILDREN];

	if (!access("/sys/kernel/debug/kmemleak", F_OK))
		test_skip("the debug kernel keeps for a while what is freed");
	for (int i = 0; i < CHILDREN; i++) {
		EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
		fds[i] = receive_fd(pinner.sockets[1]);
	}
	EVENTUALLY(number_in("/proc/slabinfo", "mm_struct ") < mms + CHILDREN / 2);
	EVENTUALLY(number_in("/proc/meminfo", "SUnreclaim:") < kib + CHILDREN * 24);
	for (int i = 0; i < CHILDREN; i++)
		close(fds[i]);
	pinner_free(&pinner);
}

TEST(host_outlives_context, "A mapping keeps the pages after the dma-buf, the context and the "
			    "process's own mapping are gone.")
{
	long long before = gdm_read_total("host-bytes");
	int ctx = gdm_open(), fd;
	unsigned char *p = pages_new(LENGTH, 1), *view;

	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &fd), 0);
	close(ctx);
	munmap(p, LENGTH);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	close(fd);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	EXPECT_EQ(gdm_read_total("host-bytes"), before + LENGTH);
	munmap(view, LENGTH);
	EXPECT_EQ(gdm_read_total("host-bytes"), before);
}

static int export_a_page(void)
{
	int ctx = gdm_open(), fd;

	EXPECT_EQ(gdm_export_host(ctx, pages_new(PAGE, 1), PAGE, 0, &fd), 0);
	return fd;
}

TEST(host_close_while_owner_remaps,
     "The last close of a dma-buf ends while the threads of the process that exported the memory "
     "remap without pause.")
{
	int fd, ended, goes_on;
	struct remapper *remapper = remapper_start(export_a_page, &fd);

	ended = close_elsewhere_ends(fd);
	goes_on = remapper_goes_on(remapper, 1);
	remapper_stop(remapper);
	EXPECT(goes_on);
	EXPECT(ended);
}

static _Noreturn void export_for_ever(int ready)
{
	enum { BIG = 128 << 20 };
	unsigned char *p = pages_new(BIG, 0);
	int ctx = gdm_open();

	memset(p, 1, BIG);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		if (gdm_export_host(ctx, p, BIG, 0, NULL))
			_exit(1);
}

TEST(host_killed, "A process killed while pinning leaves no page pinned.")
{
	long long bytes = gdm_read_total("host-bytes"), pinned = gdm_pinned_pages();

	for (int i = 0; i < 8; i++) {
		int pipes[2], status;
		pid_t child;
		char byte;

		EXPECT_EQ(pipe(pipes), 0);
		child = fork();
		if (!child)
			export_for_ever(pipes[1]);
		EXPECT_EQ(read(pipes[0], &byte, 1), 1);
		/* time: noise, the kill comes at any point of the export */
		usleep(1000 + 1700 * (unsigned int)i);
		EXPECT_EQ(kill(child, SIGKILL), 0);
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		close(pipes[0]);
		close(pipes[1]);
	}
	EXPECT_EQ(gdm_read_total("host-bytes"), bytes);
	EXPECT_EQ(gdm_pinned_pages(), pinned);
}
