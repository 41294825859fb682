/* SPDX-License-Identifier: Apache-2.0 */
/* A system that tells nothing of a stream, as gVisor. */
#ifndef TESTS_NCCL_NO_TCP_INFO_H
#define TESTS_NCCL_NO_TCP_INFO_H

#include <stdbool.h>

extern bool no_tcp_info; /* TCP_INFO is all zeros */

#endif /* TESTS_NCCL_NO_TCP_INFO_H */
