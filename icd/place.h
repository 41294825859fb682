/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of the layer: the layer's file with climport-probe's, the loader's, and the place among the layers.  All are noted when
 * the layer is loaded, so a later chdir() of the application changes none.  An absolute name is
 * noted without change: a program may begin with a filter of system calls, and the filter may kill
 * for readlink().
 */
#ifndef ICD_PLACE_H
#define ICD_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

extern struct place {
	/* The absolute path of the layer's library, "" if the path is unknown. */
	char layer[PATH_MAX];

	/*
	 * The file of the program's OpenCL loader, "" if it is unknown.  Another loader may find other drivers: the one in
	 * PyOpenCL's wheel of PyPI finds PyPI's PoCL, and the system's does not.
	 */
	char loader[PATH_MAX];

	/*
	 * The layers between climport's layer and the driver, as OPENCL_LAYERS lists layers: "", or a list
	 * with ':' at the end.  A layer below takes part in the apparent behaviour of the driver.
	 */
	char below[PATH_MAX];
} place;

/*
 * The path of climport-probe, in the build's folders or installed.  False: there is none, or it or the root directory is another file
 * than when the layer was loaded.  After chroot(), or in a new mount namespace, a path may lead to a file of somebody else,
 * and the program gets the caller's rights.
 */
bool place_of_probe(char *path, size_t size);

/* For clInitLayer(): @table has the functions below the layer, and NULL. */
void place_note_below(const void *table, size_t entries);

/* For clInitLayer(): @caller is in the loader. */
void place_note_loader(void *caller);

#endif /* ICD_PLACE_H */
