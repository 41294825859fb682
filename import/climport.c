/* SPDX-License-Identifier: Apache-2.0 */
/* libclimport's functions: see <CL/climport.h>. */
#include <CL/climport.h>

#include "gdmabuf.h"
#include "log.h"

#include <errno.h>
#include <stdint.h>

#define PUBLIC __attribute__((visibility("default")))

static int export(const void *address, size_t size, unsigned int options,
		  struct gdmabuf_range *range)
{
	int err = gdmabuf_export(GDMABUF_MEMORY_HOST, (uintptr_t)address, size, options, range);

	/* A device pointer is no host memory: the CPU has nothing mapped there, or no pages. */
	if (err != -EFAULT || options & GDMABUF_OPTION_READ_ONLY)
		return err;
	err = gdmabuf_export(GDMABUF_MEMORY_GPU, (uintptr_t)address, size, options, range);
	return err == -EOPNOTSUPP ? -EFAULT : err;
}

PUBLIC int climport_export_dmabuf(const void *address, size_t size, unsigned int flags,
				  struct climport_dmabuf *out)
{
	struct gdmabuf_range range;
	unsigned int options = 0;
	int err;

	if (flags & ~(CLIMPORT_READ_ONLY | CLIMPORT_KEEP))
		return log_errno(EINVAL, "unknown flags %#x",
				 flags & ~(CLIMPORT_READ_ONLY | CLIMPORT_KEEP));
	options |= flags & CLIMPORT_READ_ONLY ? GDMABUF_OPTION_READ_ONLY : 0;
	options |= flags & CLIMPORT_KEEP ? GDMABUF_OPTION_KEEP : 0;
	err = export(address, size, options, &range);
	if (err)
		return err;
	*out = (struct climport_dmabuf){ .fd = range.fd, .offset = range.offset, .size = size };
	return 0;
}
