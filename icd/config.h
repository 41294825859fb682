/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment asks of the layer.  A value that is not understood is the default: util/setting.h. */
#ifndef ICD_CONFIG_H
#define ICD_CONFIG_H

#include <stdbool.h>

#include "icd/cl_compat.h"

/* As config_read() found it. */
extern struct config {
	bool is_disabled; /* CLIMPORT_DISABLE=1: the layer intercepts nothing */

	/*
	 * The version of cl_arm_import_memory: CLIMPORT_VERSION=1.0.0 (default) or 1.1.0, in which the host may access
	 * imported memory.  If it is set, its rules hold for imports of drivers, too.
	 */
	cl_version version;
	bool version_is_set, host_access;

	bool verify; /* CLIMPORT_VERIFY=1: every import proves itself with data (methods/verify.h) */

	/*
	 * CLIMPORT_IMAGE2D_FROM_BUFFER=1: report cl_khr_image2d_from_buffer where 2D images on imports work, for
	 * programs that ask for the name.  The extension then holds for imported buffers only.  Not set: for ffmpeg and
	 * ffplay.
	 */
	bool image2d_from_buffer, image2d_is_set;
} config;

/* When the loader starts the layer. */
void config_read(void);

/*
 * Who tests a driver of which no record is kept: CLIMPORT_PROBE=here (the caller) or off (nobody).  Default:
 * climport-probe, unless the program has restricted its system calls, where a filter may kill it for a new process.
 */
enum config_probe { PROBE_DEFAULT, PROBE_HERE, PROBE_OFF };

enum config_probe config_probe(void);

#endif /* ICD_CONFIG_H */
