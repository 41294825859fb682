/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

/* Prints what every device can import and how; the layer has to be in OPENCL_LAYERS.  Exit status. */
int info_command(void);

#endif /* TOOLS_INFO_H */
