/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of the layer: the layer's file, and the place among the layers.  Both are noted when
 * the layer is loaded, so a later chdir() of the application changes neither.  An absolute name is
 * noted without change: a program may begin with a filter of system calls, and the filter may kill
 * for readlink().
 */
#ifndef ICD_PLACE_H
#define ICD_PLACE_H

#include <stdbool.h>

/* The absolute path of the layer's library, "" if the path is unknown. */
const char *place_of_layer(void);

/*
 * The layers between climport's layer and the driver, as OPENCL_LAYERS lists layers: "", or a list
 * with ':' at the end.  A layer below takes part in the apparent behaviour of the driver.
 */
const char *place_layers_below(void);

/*
 * Whether the root directory and the layer's file are unchanged since the layer was loaded.  After
 * chroot(), or in a new mount namespace, a path may lead to a file of somebody else.
 */
bool place_is_same(void);

/* Whether only root can write a file, and users with write access to the layer when it was loaded. */
bool place_is_as_safe(const char *path);

/* For clInitLayer(): next is known. */
void place_note_below(void);

#endif /* ICD_PLACE_H */
