/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_KMOD_SHIM_MATH64_H
#define TESTS_KMOD_SHIM_MATH64_H

#include <linux/types.h>

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

#endif
