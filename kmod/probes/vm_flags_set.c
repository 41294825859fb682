// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Since 6.3 functions change the flags of a VMA. */
#include <linux/mm.h>

void probe(struct vm_area_struct *vma);

void probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_IO);
}
