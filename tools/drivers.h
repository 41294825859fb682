/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL drivers that the loader of this machine looks for: the .icd files of a folder, or what
 * OCL_ICD_VENDORS, OPENCL_VENDOR_PATH (ocl-icd) and OCL_ICD_FILENAMES (Khronos' loader) name.
 */
#ifndef TOOLS_DRIVERS_H
#define TOOLS_DRIVERS_H

#include <stdbool.h>
#include <stddef.h>

#define DRIVER_WHY_SIZE 1024

struct driver {
	char *file;    /* the .icd file; NULL: a variable names the library */
	char *library; /* as the loader opens it; "" if the file cannot be read, or is empty */
};

struct drivers {
	struct driver *list;
	size_t count;
	const char *place; /* where the loader looks: a folder or a file */
};

/* Opens no library.  The files of a folder are in the order of their names. */
void drivers_find(struct drivers *drivers);
void drivers_free(struct drivers *drivers);

/* Lets the loader see one driver alone: by variables that both loaders understand. */
void driver_choose(const struct driver *driver);

/*
 * Opens the library as a loader does, which may end the process.  False, with the reason in @why, if
 * the loader gets no platform of it.
 */
bool driver_check(const char *library, char why[DRIVER_WHY_SIZE]);

#endif /* TOOLS_DRIVERS_H */
