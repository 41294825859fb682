/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables of the plugin with a choice of values (util/setting_values.h). */
#ifndef NCCL_CHOICE_H
#define NCCL_CHOICE_H

/* The value; NULL: not set, empty, or not understood, which is a warning each time. */
const char *choice_get(const char *name);

#endif /* NCCL_CHOICE_H */
