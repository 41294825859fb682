/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the layer is: its file, and its place among the layers.  Both are noted when the layer is
 * loaded, so that a later chdir() of the application changes neither.
 */
#ifndef ICD_PLACE_H
#define ICD_PLACE_H

/* The absolute path of the layer's library, "" if that cannot be told. */
const char *place_of_layer(void);

/*
 * The layers between this layer and the driver, as OPENCL_LAYERS lists layers: "", or a list that
 * ends with ':'.  A layer below takes part in what the driver seems to do.
 */
const char *place_layers_below(void);

/* For clInitLayer(): next is known. */
void place_note_below(void);

#endif /* ICD_PLACE_H */
