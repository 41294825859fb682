// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Since 6.7 the kernel allocates shrinkers. */
#include <linux/shrinker.h>

struct shrinker *probe(void);

struct shrinker *probe(void)
{
	return shrinker_alloc(0, "probe");
}
