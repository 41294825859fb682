/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's resource manager (RM) behind /dev/nvidiactl and /dev/nvidiaN, in the process: open() of
 * the nodes and their ioctls.  The fake checks what the kernel checks.  Exported descriptors have
 * the format of opaque.h.
 *
 * An open node is a file of its own, with the identity that fstat() shows of the node: two open
 * control nodes look the same, as with the real driver.  A file ends with its last descriptor, no
 * matter how the descriptor is closed.  A client ends with its control node and the device nodes
 * that are registered with the control node.
 *
 * libfakerm.so stands in front of libc's functions: link to the library.  A test sets the controls
 * before the test starts threads.
 */
#ifndef FAKE_RM_H
#define FAKE_RM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_RM_API __attribute__((visibility("default")))

enum { FAKE_RM_GPUS = 4 };

struct fake_rm_gpu {
	unsigned char uuid[16];
	uint32_t id, minor, instance;
	uint32_t wrong_minor; /* not 0: the minor that NV_ESC_CARD_INFO lists */
	bool no_node;	      /* /dev/nvidiaN is missing */
	bool no_card;	      /* NV_ESC_CARD_INFO does not list the GPU */
};

/*
 * A release of the driver: what differs between tags of open-gpu-kernel-modules, as far as climport
 * meets the difference.
 */
struct fake_rm_release {
	const char *version;   /* the tag */
	bool has_early_status; /* nvos.h: NVOS21's status is where later releases have a size */
	bool hides_version;    /* osapi.c: NV_ESC_CHECK_VERSION_STR has no query */
	bool has_one_device; /* device.c, _deviceInit(): of a GPU for a client; later vGPUs alone */
};

struct fake_rm {
	bool is_present; /* false at first: no driver is loaded */
	unsigned int gpu_count;
	struct fake_rm_gpu gpu[FAKE_RM_GPUS]; /* UUIDs 1, 2, 3 ... */
	struct fake_rm_release release;	      /* 580.159.04 */
	bool copied;			      /* the stub's kernels work on a copy of the memory */
	const void *refused;		      /* a host address that cannot be pinned */
	const char *exporter; /* exp_name of memfds whose names begin with fake-dmabuf */

	/*
	 * The fail_call-th call (from 1; 0: no call) of fail_name, and the fail_times - 1 calls
	 * after, give the status fail_status, or the errno fail_errno if not 0.  matched counts
	 * the calls of fail_name; the test sets matched to 0.  Calls, in the order of a first
	 * import: "open control", "version", "client", "uuid", "cards", "open device", "register",
	 * "device", "pin" or "attach", "open control", "export", "free".
	 */
	const char *fail_name;
	uint32_t fail_status;
	int fail_errno;
	unsigned int fail_call, fail_times;
	atomic_uint matched;

	/* Called at the beginning of each call of hook_name. */
	const char *hook_name;
	void (*hook)(void);

	atomic_uint calls; /* opens and ioctls */
	atomic_uint clients_made, devices_made, pins_made, attaches_made;
	atomic_size_t bytes_pinned; /* by all pins */
	atomic_uint inherited;	    /* ioctls of a child on descriptors of the parent */
	atomic_uint misuses;	    /* calls with arguments that the real RM refuses; printed */
};

FAKE_RM_API extern struct fake_rm fake_rm;

/* A driver with @gpus GPUs, and every control above at its default. */
FAKE_RM_API void fake_rm_reset(unsigned int gpus);

/* The objects that RM keeps for the process now. */
struct fake_rm_held {
	int files; /* open nodes; descriptors of exported memory are such */
	int clients, devices;
	int objects;  /* of memory */
	int memories; /* pinned or attached: by objects and by descriptors */
	size_t bytes; /* of the memories */
};
FAKE_RM_API struct fake_rm_held fake_rm_held(void);

/* The open files of a node: 0 is the control node, n the node of gpu[n - 1]. */
FAKE_RM_API int fake_rm_files(int node);

/* The lowest descriptor of the node, or -1. */
FAKE_RM_API int fake_rm_descriptor(int node);

#endif
