/* SPDX-License-Identifier: Apache-2.0 */
#include "import/kinds/range.h"

#include <errno.h>

#include "util/log.h"

int range_refuse(uintptr_t address, size_t size)
{
	if (!size)
		return log_errno(EINVAL, "the size of the memory at %#zx is 0", (size_t)address);
	return log_errno(EINVAL, "%#zx bytes at %#zx reach beyond the last address", size,
			 (size_t)address);
}
