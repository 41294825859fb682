/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport diag: what would stop PCI devices from reaching a GPU's memory.
 *
 * The command reads sysfs, procfs and the kernel's configuration, and changes no setting.  Of the
 * NVIDIA driver it knows version and licence only.  gdmabuf is asked for its provider, nothing else.
 */
#ifndef TOOLS_DIAG_H
#define TOOLS_DIAG_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Prints facts to @out, for programs if @json, and a verdict for each pair.  @root goes in front of /sys, /proc, /boot,
 * /lib and /dev.  @peer is a PCI address, perhaps without the domain; NULL: every device that could
 * use the memory.  Returns an exit status: 0 if no fact stops the DMA, 1 if a fact does, 2 if @peer
 * is no address or no device, with a sentence on standard error.
 */
int diag_command(const char *root, const char *peer, bool json, FILE *out);

#endif
