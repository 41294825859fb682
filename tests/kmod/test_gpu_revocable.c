/* SPDX-License-Identifier: Apache-2.0 */
/* Revocable exports of GPU memory: cudaFree() revokes the memory from every mapping. */
#include "gpu_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf *fault_jump;

static void gpu_on_fault(int signal)
{
	siglongjmp(*fault_jump, signal);
}

/* The signal that a read of @p raises in this process, or 0. */
static int fault_of(const volatile unsigned char *p)
{
	struct sigaction action = { .sa_handler = gpu_on_fault }, old_bus, old_segv;
	sigjmp_buf jump;
	int signal;

	sigaction(SIGBUS, &action, &old_bus);
	sigaction(SIGSEGV, &action, &old_segv);
	fault_jump = &jump;
	signal = sigsetjmp(jump, 1);
	if (!signal)
		(void)*p;
	sigaction(SIGBUS, &old_bus, NULL);
	sigaction(SIGSEGV, &old_segv, NULL);
	return signal;
}

TEST(gpu_revocable_free,
     "REVOCABLE: after cudaFree an old mapping gives SIGBUS, and a new mapping fails.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);

	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(fault_of(view), SIGBUS);
	EXPECT_EQ(fault_of(view + LENGTH - 1), SIGBUS);
	EXPECT(!dmabuf_map(e.fd, LENGTH, PROT_READ));
	EXPECT_EQ(errno, ENODEV);
	EXPECT_EQ(gdm_query(s.ctx, e.fd).out_state, GDMABUF_STALE | GDMABUF_REVOKED);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_used, s.before.pages_used);
	munmap(view, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_canary,
     "REVOCABLE: a mapping never shows a later allocation at the old place in the BAR.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);

	EXPECT_EQ(view[0], pattern_at(0));
	EXPECT_EQ(mockgpu_try_free(s.gpu, s.va, MOCK_FREE_BY_THREAD), 0);
	EXPECT_EQ(mockgpu_alloc(s.gpu, LENGTH, 0), s.va);
	memset(bytes, 0x42, LENGTH);
	mockgpu_write(s.gpu, s.va, bytes, LENGTH);
	for (size_t i = 0; i < LENGTH; i += PAGE)
		EXPECT_EQ(fault_of(view + i), SIGBUS);
	munmap(view, LENGTH);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_split,
     "REVOCABLE: after cudaFree the parts of a split and moved mapping give SIGBUS.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ), *moved;

	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view + GPU_PAGE, GPU_PAGE);
	moved = mremap(view + 4 * GPU_PAGE, GPU_PAGE, GPU_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       pages_new(GPU_PAGE, 0));
	EXPECT(moved != MAP_FAILED);
	EXPECT_EQ(moved[5], pattern_at(4 * GPU_PAGE + 5));
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(fault_of(view), SIGBUS);
	EXPECT_EQ(fault_of(moved), SIGBUS);
	EXPECT_EQ(fault_of(view + 6 * GPU_PAGE), SIGBUS);
	munmap(view, LENGTH);
	munmap(moved, GPU_PAGE);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_part,
     "REVOCABLE: a part of a pin, and a part of a mapping, show the right pages.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE), part;
	unsigned char *view;

	EXPECT_EQ(
		gdm_export_gpu(s.ctx, s.va + 2 * GPU_PAGE, 4 * GPU_PAGE, GDMABUF_REVOCABLE, &part),
		0);
	EXPECT_EQ(part.slot, e.slot);
	view = mmap(NULL, GPU_PAGE, PROT_READ, MAP_SHARED, part.fd, GPU_PAGE + PAGE);
	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(memcmp(view, bytes + 3 * GPU_PAGE + PAGE, GPU_PAGE), 0);
	munmap(view, GPU_PAGE);
	close(e.fd);
	close(part.fd);
	gpu_test_end(&s);
}

static unsigned char *map_part(const struct gdm_export *e)
{
	unsigned char *view = dmabuf_map(e->fd, 2 * GPU_PAGE, PROT_READ);

	return view && view[0] == pattern_at(0) ? view : NULL;
}

/* The number of mappings under revocable_map_mb=16: each is charged 2 MiB. */
enum { MAPPINGS = 8 };

static void fill_and_empty(const struct gdm_export *e)
{
	unsigned char *views[MAPPINGS];

	for (int i = 0; i < MAPPINGS; i++)
		EXPECT((views[i] = map_part(e)));
	EXPECT(!map_part(e));
	EXPECT_EQ(errno, ENOMEM);
	EXPECT_EQ(munmap(views[0] + PAGE, PAGE), -1);
	EXPECT_EQ(errno, ENOMEM);
	/* A split charges the second part of a mapping, so the free place is gone. */
	munmap(views[0], 2 * GPU_PAGE);
	EXPECT_EQ(mprotect(views[1], PAGE, PROT_NONE), 0);
	EXPECT(!map_part(e));
	for (int i = 1; i < MAPPINGS; i++)
		munmap(views[i], 2 * GPU_PAGE);
}

TEST(gpu_revocable_mappings,
     "A mapping of revocable memory beyond revocable_map_mb, or a split, fails with ENOMEM; "
     "unmapped parts do not count.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	unsigned char *views[MAPPINGS + 1];
	char old[16];

	snprintf(old, sizeof(old), "%d", atoi(parameter_set("gdmabuf", "revocable_map_mb", "16")));
	for (int round = 0; round < 3; round++)
		fill_and_empty(&e);
	close(e.fd);
	e = gpu_export(&s, 0);
	for (int i = 0; i <= MAPPINGS; i++)
		EXPECT((views[i] = map_part(&e)));
	for (int i = 0; i <= MAPPINGS; i++)
		munmap(views[i], 2 * GPU_PAGE);
	parameter_set("gdmabuf", "revocable_map_mb", old);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_mappings_contexts,
     "The limit revocable_map_mb counts all contexts of a user together.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e;
	unsigned char *views[MAPPINGS];
	int contexts[MAPPINGS + 1];
	char old[16];

	snprintf(old, sizeof(old), "%d", atoi(parameter_set("gdmabuf", "revocable_map_mb", "16")));
	for (int i = 0; i <= MAPPINGS; i++) {
		contexts[i] = gdm_open();
		EXPECT_EQ(gdm_export_gpu(contexts[i], s.va, LENGTH, GDMABUF_REVOCABLE, &e), 0);
		if (i < MAPPINGS)
			EXPECT((views[i] = map_part(&e)));
		else
			EXPECT(!map_part(&e));
		close(e.fd);
	}
	parameter_set("gdmabuf", "revocable_map_mb", old);
	for (int i = 0; i < MAPPINGS; i++)
		munmap(views[i], 2 * GPU_PAGE);
	for (int i = 0; i <= MAPPINGS; i++)
		close(contexts[i]);
	gpu_test_end(&s);
}

static unsigned char *mapped[2 * MAPPINGS];

/* Maps until a mapping fails.  Returns the number of mappings. */
static int map_all(const struct gdm_export *e)
{
	int n = 0;

	while (n < 2 * MAPPINGS && (mapped[n] = map_part(e)))
		n++;
	return n;
}

static void unmap_all(int n)
{
	while (n--)
		munmap(mapped[n], 2 * GPU_PAGE);
}

/*
 * Maps until a mapping fails and sends the number of mappings.  Ends on a message, or with the
 * parent.
 */
static void map_all_as_user(const struct gdm_export *e, int socket)
{
	char n;

	become_user(0);
	n = (char)map_all(e);
	if (write(socket, &n, 1) == 1 && read(socket, &n, 1) == 1)
		_exit(0);
	_exit(1);
}

TEST(gpu_revocable_mappings_others,
     "Another user's mappings of a user's revocable memory are not charged to the user.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	int sockets[2], status, mine;
	char old[16], theirs;
	pid_t pid;

	snprintf(old, sizeof(old), "%d", atoi(parameter_set("gdmabuf", "revocable_map_mb", "16")));
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (!pid)
		map_all_as_user(&e, sockets[1]);
	EXPECT_EQ(read(sockets[0], &theirs, 1), 1);
	mine = map_all(&e);
	parameter_set("gdmabuf", "revocable_map_mb", old);
	EXPECT_EQ(theirs, MAPPINGS);
	EXPECT_EQ(mine, MAPPINGS);
	EXPECT_EQ(write(sockets[0], &theirs, 1), 1);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	unmap_all(mine);
	close(sockets[0]);
	close(sockets[1]);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_mappings_freed, "Mappings of revoked memory are not charged.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	unsigned char *freed[MAPPINGS];
	char old[16];

	snprintf(old, sizeof(old), "%d", atoi(parameter_set("gdmabuf", "revocable_map_mb", "16")));
	for (int i = 0; i < MAPPINGS; i++)
		EXPECT((freed[i] = map_part(&e)));
	mockgpu_free(s.gpu, s.va);
	close(e.fd);
	/* A freed mapping can be split, too. */
	EXPECT_EQ(munmap(freed[0] + PAGE, PAGE), 0);
	EXPECT_EQ(mockgpu_alloc(s.gpu, LENGTH, 0), s.va);
	pattern_fill(bytes, LENGTH);
	mockgpu_write(s.gpu, s.va, bytes, LENGTH);
	e = gpu_export(&s, GDMABUF_REVOCABLE);
	EXPECT_EQ(map_all(&e), MAPPINGS);
	unmap_all(MAPPINGS);
	for (int i = 0; i < MAPPINGS; i++)
		munmap(freed[i], 2 * GPU_PAGE);
	EXPECT_EQ(map_all(&e), MAPPINGS);
	unmap_all(MAPPINGS);
	parameter_set("gdmabuf", "revocable_map_mb", old);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revoked_is_not_pinned, "Revoked memory is not counted as pinned.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);

	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 1);
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 0);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_bytes, 0);
	close(e.fd);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 0);
	gpu_test_end(&s);
}

TEST(gpu_failed_is_no_hit,
     "An export that finds a pin and fails at the end is not counted as a hit.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	struct gdmabuf_export *arg = (void *)pages_new(PAGE, 0);

	*arg = (struct gdmabuf_export){ .size = sizeof(*arg), .address = s.va, .length = LENGTH };
	mprotect(arg, PAGE, PROT_READ);
	EXPECT_EQ(gdm_call(s.ctx, GDMABUF_EXPORT_GPU, arg), -EFAULT);
	EXPECT_EQ(gdm_stats(s.ctx).out_exports, 1);
	EXPECT_EQ(gdm_stats(s.ctx).out_hits, 0);
	munmap(arg, PAGE);
	close(e.fd);
	gpu_test_end(&s);
}

TEST(gpu_revocable_is_apart,
     "A revocable export shares no pin with an export that is not revocable.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export a = gpu_export(&s, 0), b = gpu_export(&s, GDMABUF_REVOCABLE);

	EXPECT(a.slot != b.slot);
	close(a.fd);
	close(b.fd);
	gpu_test_end(&s);
}
