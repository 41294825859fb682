// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Since 6.5 Linux refuses long-term pins for writing if the file system tracks writes.  No header
 * shows the difference, so the version decides, and a backport is not used.
 */
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#error
#endif
