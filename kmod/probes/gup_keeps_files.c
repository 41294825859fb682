// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Since 6.5 Linux refuses to pin pages for long, and for writing, whose file system wants to hear of
 * writes.  Nothing in a header tells, so the version does: who backports it is not believed.
 */
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#error
#endif
