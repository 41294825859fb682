/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/transport.h"

const struct transport *const transports[] = {
	&transport_inner,
	&transport_libfabric,
	NULL,
};
