/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in the log of the core (NCCL_DEBUG=WARN, NCCL_DEBUG=INFO). */
#ifndef NCCL_LOG_H
#define NCCL_LOG_H

#include "nccl/net_abi.h"

void net_log_to(nccl_log_fn log);
nccl_log_fn net_log(void);

void net_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void net_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* In words; libfabric has numbers of its own beyond the system's.  @error: a negative errno. */
const char *net_error_text(int error);

#endif /* NCCL_LOG_H */
