/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>

#include "harness.h"
#include "import/kinds/range.h"
#include "util/log.h"

TEST(refused, "The sentence about bytes that are no range says what is wrong with them.")
{
	EXPECT_EQ(range_refuse(0x1000, 0), -EINVAL);
	EXPECT(!strcmp(log_last(), "the size of the memory at 0x1000 is 0"));
	EXPECT_EQ(range_refuse(0x1000, SIZE_MAX), -EINVAL);
	EXPECT(!strcmp(log_last(),
		       "0xffffffffffffffff bytes at 0x1000 reach beyond the last address"));
}
