/* SPDX-License-Identifier: Apache-2.0 */
/* A network that is slow and cuts data anywhere: TCP connections that pass through this process. */
#ifndef TESTS_NCCL_PROXY_H
#define TESTS_NCCL_PROXY_H

/*
 * Starts a proxy for the listener of a handle over libfabric's tcp, and puts the proxy's port into the
 * handle.  Each direction of each connection passes on pieces of 1 to 40,000 bytes, and waits for
 * @delay_us microseconds now and then.  The proxy ends with the process.
 */
void proxy_start(void *handle, unsigned int delay_us);

#endif /* TESTS_NCCL_PROXY_H */
