/* SPDX-License-Identifier: Apache-2.0 */
/* The layer for every program that is started, and not only for those of `climport run`. */
#ifndef TOOLS_ENABLE_H
#define TOOLS_ENABLE_H

/*
 * `climport enable` writes the files by which loaders find the layer, and prints the files' names.
 * Without --root, OPENCL_LAYERS is set as well if this machine's loader reads no layer files.
 * `climport disable` removes the files; a file that does not exist is no error.
 *
 * argv[0] says which.  Returns an exit status.
 */
int enable_start(int argc, char **argv);

#endif /* TOOLS_ENABLE_H */
