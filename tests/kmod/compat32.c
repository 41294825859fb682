/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 32-bit user of /dev/gdmabuf.  The program is freestanding, as not every machine has a 32-bit C
 * library.  Output is TAP; the exit status is 0 or 1.
 */
#include <asm/unistd_32.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/gdmabuf.h>
#include <linux/mman.h>
#include <linux/types.h>

/* The sizes of a 64-bit process, by __aligned_u64. */
_Static_assert(sizeof(void *) == 4, "32-bit");
_Static_assert(sizeof(struct gdmabuf_caps) == 52, "caps");
_Static_assert(sizeof(struct gdmabuf_export) == 32, "export");
_Static_assert(sizeof(struct gdmabuf_watch_host) == 32, "watch_host");
_Static_assert(sizeof(struct gdmabuf_watch_id) == 16, "watch_id");

enum { PAGE = 4096 /* of x86 */, STATUS_BYTES = 4 * PAGE };

long call(long nr, long a, long b, long c, long d, long e, long f);
void start(void);
void *memset(void *to, int byte, unsigned int n);

__asm__(".globl _start\n"
	"_start:\n"
	"	and $-16, %esp\n"
	"	call start\n"
	".globl call\n"
	"call:\n"
	"	push %ebp\n"
	"	push %ebx\n"
	"	push %esi\n"
	"	push %edi\n"
	"	mov 20(%esp), %eax\n"
	"	mov 24(%esp), %ebx\n"
	"	mov 28(%esp), %ecx\n"
	"	mov 32(%esp), %edx\n"
	"	mov 36(%esp), %esi\n"
	"	mov 40(%esp), %edi\n"
	"	mov 44(%esp), %ebp\n"
	"	int $0x80\n"
	"	pop %edi\n"
	"	pop %esi\n"
	"	pop %ebx\n"
	"	pop %ebp\n"
	"	ret\n");

/* The compiler emits calls of memset(). */
void *memset(void *to, int byte, unsigned int n)
{
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(byte) : "memory");
	return to;
}

static void print(const char *text)
{
	unsigned int n = 0;

	while (text[n])
		n++;
	call(__NR_write, 1, (long)text, n, 0, 0, 0);
}

static _Noreturn void leave(int status)
{
	for (;;)
		call(__NR_exit, status, 0, 0, 0, 0, 0);
}

static void expect(int condition, const char *sentence)
{
	print(condition ? "ok - " : "not ok - ");
	print(sentence);
	print("\n");
	if (!condition)
		leave(1);
}

/* Returns 0 or -errno.  All functions here return errors as the kernel does. */
static long gdm(int ctx, unsigned long request, void *arg)
{
	return call(__NR_ioctl, ctx, (long)request, (long)arg, 0, 0, 0);
}

/* @page is the offset in pages.  Addresses of this process are all below -PAGE. */
static volatile unsigned char *map(unsigned int length, int prot, int flags, int fd, int page)
{
	return (void *)call(__NR_mmap2, 0, length, prot, flags, fd, page);
}

static void unmap(volatile void *at, unsigned int length)
{
	call(__NR_munmap, (long)at, length, 0, 0, 0, 0);
}

static int mapped(const volatile void *at)
{
	return (unsigned long)at <= -(unsigned long)PAGE;
}

static struct gdmabuf_export export(__u64 address, unsigned int length, __u32 flags)
{
	struct gdmabuf_export e = {
		.size = sizeof(e), .flags = flags, .address = address, .length = length
	};

	return e;
}

static void test_caps(int ctx)
{
	struct gdmabuf_caps caps = { .size = sizeof(caps) };

	expect(!gdm(ctx, GDMABUF_CAPS, &caps) && caps.out_host_page_size == PAGE &&
		       caps.out_watches * sizeof(__u32) == STATUS_BYTES,
	       "GDMABUF_CAPS answers a 32-bit process.");
	expect(gdm(ctx, GDMABUF_CAPS, (void *)-(long)PAGE) == -EFAULT,
	       "A structure outside the address space fails with EFAULT.");
}

static void test_dmabuf(const struct gdmabuf_export *e, volatile unsigned char *memory)
{
	volatile unsigned char *all =
		map(2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, e->out_fd, 0);
	volatile unsigned char *second = map(PAGE, PROT_READ, MAP_SHARED, e->out_fd, 1);

	expect(mapped(all) && mapped(second), "The dma-buf is mapped with mmap2().");
	all[0] = 1;
	memory[PAGE] = 2;
	expect(memory[0] == 1 && all[PAGE] == 2 && second[0] == 2,
	       "The dma-buf shows the process's memory, at the offset of mmap2().");
	unmap(all, 2 * PAGE);
	unmap(second, PAGE);
}

static void test_high_address(int ctx, const volatile void *memory)
{
	struct gdmabuf_export e = export(1ULL << 32 | (unsigned long)memory, 2 * PAGE, 0);

	expect(gdm(ctx, GDMABUF_EXPORT_HOST, &e) == -EFAULT,
	       "An address beyond 4 GiB fails with EFAULT, and is not cut to 32 bits.");
}

static void test_watch(int ctx)
{
	volatile __u32 *status = (void *)map(STATUS_BYTES, PROT_READ, MAP_SHARED, ctx, 0);
	volatile unsigned char *memory =
		map(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gdmabuf_watch_host watch = { .size = sizeof(watch),
					    .address = 1ULL << 32 | (unsigned long)memory,
					    .length = PAGE };
	struct gdmabuf_watch_id id = { .size = sizeof(id) };

	expect(gdm(ctx, GDMABUF_WATCH_HOST, &watch) == -EFAULT,
	       "A watch of an address beyond 4 GiB fails with EFAULT.");
	watch.address = (unsigned long)memory;
	expect(mapped(status) && mapped(memory) && !gdm(ctx, GDMABUF_WATCH_HOST, &watch) &&
		       status[watch.out_slot] == watch.out_generation,
	       "GDMABUF_WATCH_HOST watches the memory of a 32-bit process.");
	memory[0] = 1;
	unmap(memory, PAGE);
	expect(status[watch.out_slot] != watch.out_generation,
	       "The status page shows a stale watch after munmap().");
	id.slot = watch.out_slot;
	id.generation = watch.out_generation;
	expect(!gdm(ctx, GDMABUF_UNWATCH_HOST, &id) &&
		       gdm(ctx, GDMABUF_UNWATCH_HOST, &id) == -ENOENT,
	       "GDMABUF_UNWATCH_HOST ends a watch.");
}

void start(void)
{
	volatile unsigned char *memory =
		map(2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gdmabuf_export e = export((unsigned long)memory, 2 * PAGE, 0);
	int ctx = call(__NR_open, (long)"/dev/gdmabuf", O_RDWR, 0, 0, 0, 0);

	expect(ctx >= 0 && mapped(memory), "A 32-bit process opens /dev/gdmabuf.");
	test_caps(ctx);
	expect(!gdm(ctx, GDMABUF_EXPORT_HOST, &e) && e.out_fd >= 0,
	       "GDMABUF_EXPORT_HOST exports the memory of a 32-bit process.");
	test_dmabuf(&e, memory);
	test_high_address(ctx, memory);
	test_watch(ctx);
	print("1..11\n");
	leave(0);
}
