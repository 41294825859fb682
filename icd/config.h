/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment asks of the layer.  A value that is not understood is the default: util/setting.h. */
#ifndef ICD_CONFIG_H
#define ICD_CONFIG_H

#include <stdbool.h>

#include "icd/cl_compat.h"

/* The version of cl_arm_import_memory: CLIMPORT_VERSION=1.0.0 (default) or 1.1.0. */
cl_version config_version(void);

/* Whether the environment asks for the version: its rules then hold for imports of drivers, too. */
bool config_version_is_set(void);

/* From 1.1.0 on the host may access imported memory. */
bool config_host_access(void);

/*
 * CLIMPORT_IMAGE2D_FROM_BUFFER=1: report cl_khr_image2d_from_buffer where 2D
 * images on imports work, for programs that ask for the name.  The extension then holds for
 * imported buffers only.  Not set: for ffmpeg and ffplay.
 */
bool config_image2d_from_buffer(void);
bool config_image2d_is_set(void);

/* CLIMPORT_DISABLE=1: the layer intercepts nothing. */
bool config_is_disabled(void);

/* CLIMPORT_VERIFY=1: every import proves itself with data (methods/verify.h). */
bool config_verify(void);

/*
 * Who tests a driver of which no record is kept: CLIMPORT_PROBE=here (the caller) or off (nobody).  Default:
 * climport-probe, unless the program has restricted its system calls, where a filter may kill it for a new process.
 */
enum config_probe { PROBE_DEFAULT, PROBE_HERE, PROBE_OFF };

enum config_probe config_probe(void);

#endif /* ICD_CONFIG_H */
