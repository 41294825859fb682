/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Vulkan driver that imports memory as NVIDIA's does: memory the driver cannot pin gives
 * VK_ERROR_OUT_OF_DEVICE_MEMORY, and afterwards the VkDevice refuses every import.
 * Opaque descriptors have the format of opaque.h.
 *
 * Built as libvulkan.so.1, for LD_LIBRARY_PATH.  A test sets the controls before the test starts
 * threads.
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
	bool no_fd, no_host, no_dmabuf; /* hidden extensions */
	size_t alignment;		/* minImportedHostPointerAlignment */
	unsigned int release;		/* NVIDIA's driver of this release; 0: another vendor's */
};

struct fake_vulkan {
	unsigned int gpu_count; /* 1 at first, UUID 1, 2, 3 ... */
	struct fake_vulkan_gpu gpu[FAKE_VULKAN_GPUS];
	const void *refused;  /* a host address that cannot be pinned */
	const char *missing;  /* a function that vkGetInstanceProcAddr() does not find */
	unsigned int slow_us; /* the duration of an import */
	unsigned int meeting; /* so many imports wait for each other, the first time */
	bool forks;	      /* each call that can fail forks first */

	/*
	 * The fail_call-th call (from 1; 0: no call) of fail_name, or of any function if NULL,
	 * gives fail_result, and so do the fail_times - 1 calls after.  matched counts the calls
	 * of fail_name; the test sets matched to 0.
	 */
	const char *fail_name;
	int fail_result;
	unsigned int fail_call, fail_times;
	atomic_uint matched;

	/* Counters, for the test to read. */
	atomic_uint calls;			  /* of functions that can fail */
	atomic_uint instances, devices, memories; /* alive */
	atomic_uint devices_made, imports;
	atomic_uint spoiled_uses; /* imports by a device that had refused an import */
	atomic_uint concurrent;	  /* the most imports in progress at a time */
	atomic_uint misuses;	  /* calls that break the specification; printed */
	atomic_uint last_type;	  /* memoryTypeIndex of the last import */
};

/* Loads the fake; returns the fake's state, or NULL without LD_LIBRARY_PATH. */
static inline struct fake_vulkan *fake_vulkan(void)
{
	void *library = dlopen("libvulkan.so.1", RTLD_NOW);

	return library ? (struct fake_vulkan *)dlsym(library, "fake_vulkan_state") : NULL;
}

#endif
