/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Vulkan driver that imports memory as NVIDIA's does: what it cannot pin it refuses with
 * VK_ERROR_OUT_OF_DEVICE_MEMORY, and from then on the VkDevice refuses everything.
 * Opaque descriptors are those of opaque.h.
 *
 * Built as libvulkan.so.1, for LD_LIBRARY_PATH.  Set it up before the threads that use it.
 */
#ifndef FAKE_VULKAN_H
#define FAKE_VULKAN_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { FAKE_VULKAN_GPUS = 4 };

struct fake_vulkan_gpu {
	unsigned char uuid[16];
	bool no_fd, no_host, no_dmabuf; /* extensions that are hidden */
	size_t alignment;		/* minImportedHostPointerAlignment */
};

struct fake_vulkan {
	unsigned int gpu_count; /* 1 at first, UUID 1, 2, 3 ... */
	struct fake_vulkan_gpu gpu[FAKE_VULKAN_GPUS];
	const void *refused;  /* a host address that cannot be pinned, nobody knows why */
	const char *missing;  /* a function that is not there */
	unsigned int slow_us; /* how long an import takes */
	bool forks;	      /* each call that can fail forks first */

	/*
	 * The fail_call-th call (from 1; 0: none) of fail_name, or of any function if NULL, and
	 * the fail_times - 1 that follow give fail_result.  matched counts, and is set to 0 by
	 * the test.
	 */
	const char *fail_name;
	int fail_result;
	unsigned int fail_call, fail_times;
	atomic_uint matched;

	/* What was counted. */
	atomic_uint calls;			  /* that can fail */
	atomic_uint instances, devices, memories; /* alive */
	atomic_uint devices_made, imports;
	atomic_uint spoiled_uses; /* imports asked of a device that had refused one */
	atomic_uint concurrent;	  /* imports at the same time, at most */
	atomic_uint misuses;	  /* against the specification; printed */
	atomic_uint last_type;	  /* memoryTypeIndex of the last import */
};

/* The one of this process; loads it.  NULL without LD_LIBRARY_PATH. */
static inline struct fake_vulkan *fake_vulkan(void)
{
	void *library = dlopen("libvulkan.so.1", RTLD_NOW);

	return library ? (struct fake_vulkan *)dlsym(library, "fake_vulkan_state") : NULL;
}

#endif
