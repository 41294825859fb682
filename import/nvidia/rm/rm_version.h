/* SPDX-License-Identifier: Apache-2.0 */
/* The release of NVIDIA's driver. */
#ifndef IMPORT_NVIDIA_RM_RM_VERSION_H
#define IMPORT_NVIDIA_RM_RM_VERSION_H

/*
 * 0 if the driver of a control node is of a release that pins host memory; else -EOPNOTSUPP, logged.
 */
int rm_version_check(int control);

#endif
