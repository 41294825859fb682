/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the layer is: its file, and its place among the layers.  Both are noted when the layer is
 * loaded, so that a later chdir() of the application changes neither.  An absolute name is noted
 * as it is: filters of system calls that a program begins with may kill for readlink().
 */
#ifndef ICD_PLACE_H
#define ICD_PLACE_H

#include <stdbool.h>

/* The absolute path of the layer's library, "" if that cannot be told. */
const char *place_of_layer(void);

/*
 * The layers between this layer and the driver, as OPENCL_LAYERS lists layers: "", or a list that
 * ends with ':'.  A layer below takes part in what the driver seems to do.
 */
const char *place_layers_below(void);

/*
 * Whether the root directory and the layer's file are those from when the layer was loaded.  After
 * chroot(), or in another mount namespace, a path may lead to a file of somebody else.
 */
bool place_is_same(void);

/* Whether a file is written by nobody but root and those who could write the layer when it was loaded. */
bool place_is_as_safe(const char *path);

/* For clInitLayer(): next is known. */
void place_note_below(void);

#endif /* ICD_PLACE_H */
