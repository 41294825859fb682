/* SPDX-License-Identifier: Apache-2.0 */
/* Controls and counters of the transport of loopback.c, for tests. */
#ifndef TESTS_NCCL_LOOPBACK_H
#define TESTS_NCCL_LOOPBACK_H

/* What the device says of itself. */
#define LOOPBACK_CONNECTIONS 1000
#define LOOPBACK_MESSAGE (1 << 28)

struct loopback_counts {
	int mappings;	 /* made and not unmapped */
	int mapped;	 /* made so far */
	int connections; /* ends that are open */
	int flushes;	 /* made so far */
};

/* Symbols of the plugin in the test build. */
typedef struct loopback_counts (*loopback_counts_fn)(void);

/*
 * In the environment: LOOPBACK_REFUSES=1, the device says that it takes dma-bufs, and refuses them;
 * LOOPBACK_FLUSHES=1, the device can flush; LOOPBACK_EMPTY=1, there is no device.
 */

#endif /* TESTS_NCCL_LOOPBACK_H */
