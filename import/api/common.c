/* SPDX-License-Identifier: Apache-2.0 */
#include "import/api/common.h"

#include <CL/climport.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"

int climport_check_caller(uint64_t flags, uint64_t known, size_t out_size, size_t least)
{
	if (flags & ~known)
		return log_errno(EINVAL, "unknown flags %#" PRIx64, flags & ~known);
	return out_size < least
		       ? log_errno(EINVAL, "out_size is %zu, less than %zu: pass sizeof(*out)",
				   out_size, least)
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
		       : log_errno(EINVAL,
				   "the kind %u is neither CLIMPORT_HOST nor CLIMPORT_DEVICE",
				   kind);
}

static _Thread_local char climport_error_text[LOG_MESSAGE_SIZE];

void climport_error_begin(void)
{
	log_clear();
}

int climport_error_end(int ret)
{
	if (ret)
		snprintf(climport_error_text, sizeof(climport_error_text), "%s",
			 *log_last() ? log_last() : log_strerror(-ret));
	return ret;
}

PUBLIC const char *climport_last_error(void)
{
	return climport_error_text;
}
