/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

/*
 * Prints for every device which memory the device can import, and how.  The layer has to be in
 * OPENCL_LAYERS.  Returns an exit status.
 */
int info_command(void);

#endif /* TOOLS_INFO_H */
