/* SPDX-License-Identifier: Apache-2.0 */
/* Network interfaces, as devices of the provider tcp. */
#ifndef NCCL_LIBFABRIC_INTERFACE_H
#define NCCL_LIBFABRIC_INTERFACE_H

#include "nccl/libfabric/fabric.h"

#define FABRIC_FAMILIES 3

/* The user's list of interfaces; NULL: there is none. */
const char *fabric_interface_list(void);

/* Whether the list, or without a list the default, has the interface of @info. */
bool fabric_interface_is_wanted(const struct fi_info *info, const char *list);

/* Whether the address of @info is of a family: the best family first, which is IPv4. */
extern bool (*const fabric_families[FABRIC_FAMILIES])(const struct fi_info *);

/* Mbit/s */
int fabric_interface_speed(const char *name);

#endif /* NCCL_LIBFABRIC_INTERFACE_H */
