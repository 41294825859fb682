/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of climport lie, installed or in a build tree. */
#ifndef TOOLS_PATHS_H
#define TOOLS_PATHS_H

/* The layer, or the conformance program.  NULL, with a message printed, if it is not there. */
const char *path_layer(void);
const char *path_conform(void);

/* Puts the layer into OPENCL_LAYERS, innermost.  False, with a message printed, if that fails. */
int enable_layer(void);

#endif /* TOOLS_PATHS_H */
