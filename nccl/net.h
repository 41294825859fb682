/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every version of the plugin does, in the types of the newest version.  versions.c puts the
 * versions of the interface on top; transports move the messages.
 */
#ifndef NCCL_NET_H
#define NCCL_NET_H

#include "nccl/net_abi.h"
#include "nccl/transport.h"

#define NET_NAME "climport"

/* Each success is undone by a net_finalize(); before version 11 of the interface there is none. */
enum nccl_result net_init(nccl_log_fn log);
enum nccl_result net_finalize(void *context);
enum nccl_result net_devices(int *count);
enum nccl_result net_properties(int device, struct nccl_net_properties_v12 *properties);

enum nccl_result net_listen(int device, void *handle, void **listen_comm);
enum nccl_result net_connect(int device, void *handle, void **send_comm);
enum nccl_result net_accept(void *listen_comm, void **recv_comm);
enum nccl_result net_close_listen(void *listen_comm);
enum nccl_result net_close(void *comm);

enum nccl_result net_register(void *comm, void *data, size_t size, int type, void **mhandle);
enum nccl_result net_register_dmabuf(void *comm, void *data, size_t size, int type, uint64_t offset,
				     int fd, void **mhandle);
enum nccl_result net_deregister(void *comm, void *mhandle);

enum nccl_result net_send(void *comm, void *data, size_t size, void *mhandle, void **request);
enum nccl_result net_receive(void *comm, int count, void **data, const size_t *sizes,
			     void **mhandles, void **request);
enum nccl_result net_flush(void *comm, int count, void **data, const int *sizes, void **mhandles,
			   void **request);
enum nccl_result net_test(void *request, int *done, int *sizes);

#endif /* NCCL_NET_H */
