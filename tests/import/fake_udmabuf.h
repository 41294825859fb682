/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake of udmabuf, by wrappers of open() and ioctl(): no /dev/gdmabuf, and dma-bufs that are
 * descriptors of the memfd.  The fake refuses what the kernel refuses.
 */
#ifndef TESTS_FAKE_UDMABUF_H
#define TESTS_FAKE_UDMABUF_H

#include <stdbool.h>
#include <stdint.h>

extern struct fake_udmabuf {
	bool is_there;	       /* /dev/udmabuf */
	int gdmabuf_error;     /* of open("/dev/gdmabuf") */
	int error;	       /* of UDMABUF_CREATE, if not 0 */
	uint64_t limit;	       /* udmabuf.size_limit_mb, in bytes */
	int creates;	       /* that were successful */
	uint64_t offset, size; /* of the last */
} fake_udmabuf;

void fake_udmabuf_reset(void);

#endif
