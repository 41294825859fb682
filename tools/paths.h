/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of climport lie, installed or in a build tree. */
#ifndef TOOLS_PATHS_H
#define TOOLS_PATHS_H

/* The layer, or the conformance program.  NULL, with a message printed, if it is not there. */
const char *path_layer(void);
const char *path_conform(void);

/*
 * Puts the layer into OPENCL_LAYERS, innermost.  False, with a message printed, if that fails, or
 * if no loader could load it from there.
 */
int enable_layer(void);

/* Whether it is in OPENCL_LAYERS. */
int is_layer_enabled(void);

/* Why the layer is not in this process though it is enabled: a sentence. */
const char *why_no_layer(void);

#endif /* TOOLS_PATHS_H */
