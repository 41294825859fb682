// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Since 6.2 a long-term pin for reading makes the process's own copies of a file's pages in a
 * private mapping.  Before, <linux/mm.h> has gup_must_unshare() without the mapping.
 */
#include <linux/mm.h>

bool gup_must_unshare(struct vm_area_struct *vma, unsigned int flags, struct page *page);

const unsigned int gdmabuf_probe = FAULT_FLAG_UNSHARE;
