/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport diag: what would stop PCI devices from reaching a GPU's memory.
 *
 * It reads what the kernel says of itself, and changes nothing.  It knows the NVIDIA driver
 * by its version and licence only, and asks gdmabuf where that is loaded.
 */
#ifndef TOOLS_DIAG_H
#define TOOLS_DIAG_H

#include <stdio.h>

/*
 * Prints facts and one verdict a pair to @out.  @root goes in front of /sys, /proc, /boot, /lib and
 * /dev.  @peer is a PCI address, the domain may be left out; NULL: every device that could use
 * the memory.  Returns an exit status: 0 nothing stops it, 1 something does, 2 @peer is no
 * address or there is no such device, with a sentence on standard error.
 */
int diag_command(const char *root, const char *peer, FILE *out);

#endif
