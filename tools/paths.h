/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of climport lie, installed or in a build tree. */
#ifndef TOOLS_PATHS_H
#define TOOLS_PATHS_H

#include <stdbool.h>

/* The layer, and the conformance program.  NULL, with a message, if the file does not exist. */
const char *path_layer(void);
const char *path_conform(void);

/*
 * Puts the layer into OPENCL_LAYERS, innermost.  False, with a message, if setenv() fails, or if no
 * loader could load the layer from the list.
 */
int enable_layer(void);

/*
 * Puts the folder with the libOpenCL.so that has clImportMemoryARM last into LD_LIBRARY_PATH, for
 * programs that look the symbol up there by dlsym().  A machine's libOpenCL.so that has the symbol, or
 * is another library than libOpenCL.so.1, stays the one that is found.  False: no memory.
 */
int enable_symbol(void);

/* Whether the loader, libOpenCL.so.1, reads a variable: its file has the name. */
bool loader_knows(const char *variable);

/* A sentence: why the layer is enabled and yet not loaded. */
const char *why_no_layer(void);

#endif /* TOOLS_PATHS_H */
