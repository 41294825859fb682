/* SPDX-License-Identifier: Apache-2.0 */
#include "import/api/caller.h"

#include <CL/climport.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/log.h"

int climport_check_caller(uint64_t flags, uint64_t known, size_t out_size, size_t least)
{
	if (flags & ~known)
		return log_errno(EINVAL, "unknown flags %#" PRIx64, flags & ~known);
	return out_size < least
		       ? log_errno(EINVAL, "a struct of %zu bytes, less than %zu", out_size, least)
		       : 0;
}

void climport_fill(void *out, size_t out_size, const void *made, size_t size)
{
	size_t both = out_size < size ? out_size : size;

	memcpy(out, made, both);
	memset((char *)out + both, 0, out_size - both);
}

int climport_check_kind(unsigned int kind)
{
	return kind == CLIMPORT_HOST || kind == CLIMPORT_DEVICE
		       ? 0
		       : log_errno(EINVAL, "there is no kind of memory %u", kind);
}
