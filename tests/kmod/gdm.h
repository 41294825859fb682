/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ioctls of /dev/gdmabuf for tests.  Unless a comment says otherwise, a function returns 0 or
 * -errno and changes no argument.  Without the module every test is skipped.
 */
#ifndef TESTS_KMOD_GDM_H
#define TESTS_KMOD_GDM_H

#include <linux/gdmabuf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

/* The kernel's pages.  A page table is a page of words of 8 bytes; a huge page replaces a table. */
#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define HUGE_PAGE (PAGE / 8 * PAGE)

/* Whole pages of every kernel. */
enum { GPU_PAGE = 65536 };

/* Skips the test if a huge page has 512 MiB, as with pages of 64 KiB: the guest is too small. */
void gdm_need_huge_pages(void);

/* Opens a context.  If the device cannot be opened, the test is skipped. */
int gdm_open(void);

/* ioctl(@ctx, @request, @arg) as 0 or -errno. */
int gdm_call(int ctx, unsigned long request, void *arg);

/* @fd receives the dma-buf.  If @fd is NULL, the descriptor is closed. */
int gdm_export_host(int ctx, const void *address, size_t length, uint32_t flags, int *fd);
int gdm_export_gpu(int ctx, uint64_t address, size_t length, uint32_t flags, int *fd);

struct gdm_watch {
	uint32_t slot, generation;
};

int gdm_watch_host(int ctx, const void *address, size_t length, struct gdm_watch *watch);
int gdm_unwatch(int ctx, const struct gdm_watch *watch);

enum { WATCHES = 4096, STATUS_BYTES = WATCHES * 4 };

/* Maps the context's status page, STATUS_BYTES, read-only. */
const volatile uint32_t *gdm_status(int ctx);
int gdm_is_current(const volatile uint32_t *status, const struct gdm_watch *watch);

/* Waits for @condition, which a work item brings about.  Half a minute is a limit on a hang. */
#define EVENTUALLY(condition)                                       \
	do {                                                        \
		for (int i_ = 0; !(condition) && i_ < 6000; i_++)   \
			usleep(5000); /* time: between two looks */ \
		EXPECT(condition);                                  \
	} while (0)

/* New private pages: zeros, or with @fill the bytes of pattern_at(). */
unsigned char *pages_new(size_t length, int fill);
/* New transparent huge pages, @n in a row; NULL if the kernel gives no huge pages. */
unsigned char *huge_pages_new(size_t n, int fill);
unsigned char pattern_at(size_t i);
size_t pattern_mismatches(const void *bytes, size_t length);
void pattern_fill(void *bytes, size_t length);

/* Maps a dma-buf; NULL with errno on failure. */
unsigned char *dmabuf_map(int fd, size_t length, int prot);

/* Runs @body in a child.  Returns the child's exit status, or 128 + signal. */
int in_child(void (*body)(void *arg), void *arg);

/* For children: becomes uid 1000 without capabilities and with RLIMIT_MEMLOCK of @memlock bytes. */
void become_user(size_t memlock);

/* Send and receive a descriptor by SCM_RIGHTS. */
void send_fd(int socket, int fd);
int receive_fd(int socket);

/* Reads a total of the module, "host-bytes", "gpu-bytes" or "watches", from debugfs. */
long long gdm_read_total(const char *total);

/* The number of pages that all drivers have pinned, from the kernel's counters. */
long long gdm_pinned_pages(void);

/* How often the module is in use. */
int gdm_module_users(const char *module);

#endif
