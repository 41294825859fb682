/* SPDX-License-Identifier: Apache-2.0 */
/* DRM's "dumb" buffers, which need no knowledge of the GPU.  The structures are those of <drm/drm.h>. */
#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { CARDS = 64, PITCH = 4096, CAP_DUMB_BUFFER = 1, CAP_PRIME = 5, PRIME_EXPORTS = 2 };

struct heap_drm_version {
	int version[3];
	size_t name_len;
	char *name;
	size_t date_len;
	char *date;
	size_t desc_len;
	char *desc;
};

struct heap_drm_cap {
	__u64 cap, value;
};

struct heap_drm_prime {
	__u32 handle, flags;
	__s32 fd;
};

struct heap_drm_dumb {
	__u32 height, width, bpp, flags;
	__u32 handle, pitch;
	__u64 size;
};

#define HEAP_DRM_VERSION _IOWR('d', 0x00, struct heap_drm_version)
#define HEAP_DRM_CAP _IOWR('d', 0x0c, struct heap_drm_cap)
#define HEAP_DRM_PRIME _IOWR('d', 0x2d, struct heap_drm_prime)
#define HEAP_DRM_CREATE_DUMB _IOWR('d', 0xb2, struct heap_drm_dumb)
#define HEAP_DRM_DESTROY_DUMB _IOWR('d', 0xb4, __u32)

static int heap_drm_call(int card, unsigned long request, void *arg)
{
	while (ioctl(card, request, arg))
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	return 0;
}

static bool heap_drm_is_called(int card, const char *driver)
{
	char name[64] = "";
	struct heap_drm_version version = { .name = name, .name_len = sizeof(name) - 1 };

	return !heap_drm_call(card, HEAP_DRM_VERSION, &version) &&
	       (!driver || !strcmp(name, driver));
}

/* Drivers without modes, like vgem, give no answer about dumb buffers. */
static bool heap_drm_is_usable(int card, const char *driver)
{
	struct heap_drm_cap dumb = { .cap = CAP_DUMB_BUFFER, .value = 1 };
	struct heap_drm_cap prime = { .cap = CAP_PRIME };

	if (!heap_drm_is_called(card, driver))
		return false;
	if (heap_drm_call(card, HEAP_DRM_CAP, &dumb))
		dumb.value = 1;
	return dumb.value && !heap_drm_call(card, HEAP_DRM_CAP, &prime) &&
	       (prime.value & PRIME_EXPORTS);
}

static int heap_drm_open(const char *driver)
{
	char path[32];

	for (int i = 0; i < CARDS; i++) {
		int card;

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		card = open(path, O_RDWR | O_CLOEXEC);
		if (card < 0)
			continue;
		if (heap_drm_is_usable(card, driver))
			return card;
		close(card);
	}
	return -ENODEV;
}

int heap_create_drm(const struct heap *heap, size_t size, int access)
{
	struct heap_drm_dumb dumb = {
		.width = PITCH / 4,
		.height = (__u32)((size + PITCH - 1) / PITCH),
		.bpp = 32,
	};
	struct heap_drm_prime prime = {
		.flags = O_CLOEXEC | (access == O_RDWR ? O_RDWR : 0),
		.fd = -1,
	};
	int error, card = heap_drm_open(heap->device);

	if (card < 0)
		return card;
	error = heap_drm_call(card, HEAP_DRM_CREATE_DUMB, &dumb);
	if (!error) {
		prime.handle = dumb.handle;
		error = heap_drm_call(card, HEAP_DRM_PRIME, &prime);
		/* The dma-buf keeps the memory. */
		heap_drm_call(card, HEAP_DRM_DESTROY_DUMB, &dumb.handle);
	}
	close(card);
	return error ? error : prime.fd;
}
