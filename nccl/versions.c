/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The versions of the interface, each a table over the functions of net.h.  A function here has the
 * version with which its parameters came, and newer tables keep the function as long as the
 * parameters stay.
 */
#include "nccl/net.h"

#define EXPORTED __attribute__((visibility("default")))

/* The properties that every version has. */
#define COMMON_PROPERTIES(of)                                                  \
	.name = (of).name, .pciPath = (of).pciPath, .guid = (of).guid,         \
	.ptrSupport = (of).ptrSupport, .speed = (of).speed, .port = (of).port, \
	.latency = (of).latency, .maxComms = (of).maxComms, .maxRecvs = (of).maxRecvs

static enum nccl_result versions_init_v6(nccl_log_fn log)
{
	return net_init(log);
}

static enum nccl_result versions_init_v10(nccl_log_fn log, nccl_profiler_fn profiler)
{
	(void)profiler;
	return net_init(log);
}

/* The context of every communicator is the plugin. */
static enum nccl_result versions_init_v11(void **context, uint64_t communicator,
					  struct nccl_net_config *config, nccl_log_fn log,
					  nccl_profiler_fn profiler)
{
	static char plugin;
	enum nccl_result result = net_init(log);

	(void)communicator, (void)config, (void)profiler;
	*context = result ? NULL : &plugin;
	return result;
}

static enum nccl_result versions_properties_v6(int device, struct nccl_net_properties_v6 *old)
{
	struct nccl_net_properties_v12 new;
	enum nccl_result result = net_properties(device, &new);

	if (!result)
		*old = (struct nccl_net_properties_v6){
			COMMON_PROPERTIES(new),
		};
	return result;
}

static enum nccl_result versions_properties_v7(int device, struct nccl_net_properties_v7 *old)
{
	struct nccl_net_properties_v12 new;
	enum nccl_result result = net_properties(device, &new);

	if (!result)
		*old = (struct nccl_net_properties_v7){
			COMMON_PROPERTIES(new),
			.netDeviceType = new.netDeviceType,
			.netDeviceVersion = new.netDeviceVersion,
		};
	return result;
}

static enum nccl_result versions_properties_v8(int device, struct nccl_net_properties_v8 *old)
{
	struct nccl_net_properties_v12 new;
	enum nccl_result result = net_properties(device, &new);

	if (!result)
		*old = (struct nccl_net_properties_v8){
			COMMON_PROPERTIES(new),
			.regIsGlobal = new.regIsGlobal,
			.netDeviceType = new.netDeviceType,
			.netDeviceVersion = new.netDeviceVersion,
		};
	return result;
}

static enum nccl_result versions_properties_v11(int device, struct nccl_net_properties_v11 *old)
{
	struct nccl_net_properties_v12 new;
	enum nccl_result result = net_properties(device, &new);

	if (!result)
		*old = (struct nccl_net_properties_v11){
			COMMON_PROPERTIES(new),
			.regIsGlobal = new.regIsGlobal,
			.forceFlush = new.forceFlush,
			.netDeviceType = new.netDeviceType,
			.netDeviceVersion = new.netDeviceVersion,
			.vProps = { .ndevs = 1, .devs = { device } },
			.maxP2pBytes = new.maxP2pBytes,
			.maxCollBytes = new.maxCollBytes,
			.maxMultiRequestSize = new.maxMultiRequestSize,
		};
	return result;
}

static enum nccl_result versions_properties_v9(int device, struct nccl_net_properties_v9 *old)
{
	struct nccl_net_properties_v11 new;
	enum nccl_result result = versions_properties_v11(device, &new);

	if (!result)
		*old = (struct nccl_net_properties_v9){
			COMMON_PROPERTIES(new),
			.regIsGlobal = new.regIsGlobal,
			.forceFlush = new.forceFlush,
			.netDeviceType = new.netDeviceType,
			.netDeviceVersion = new.netDeviceVersion,
			.vProps = new.vProps,
			.maxP2pBytes = new.maxP2pBytes,
			.maxCollBytes = new.maxCollBytes,
		};
	return result;
}

static enum nccl_result versions_listen_v11(void *context, int device, void *handle,
					    void **listen_comm)
{
	(void)context;
	return net_listen(device, handle, listen_comm);
}

/* No device code: the core's place for a handle of device code is set to NULL. */
static void versions_no_device_comm(void **device_comm)
{
	if (device_comm)
		*device_comm = NULL;
}

static enum nccl_result versions_connect_v7(int device, void *handle, void **send_comm,
					    void **device_comm)
{
	versions_no_device_comm(device_comm);
	return net_connect(device, handle, send_comm);
}

static enum nccl_result versions_connect_v10(int device, struct nccl_net_config *config,
					     void *handle, void **send_comm, void **device_comm)
{
	(void)config;
	versions_no_device_comm(device_comm);
	return net_connect(device, handle, send_comm);
}

static enum nccl_result versions_connect_v11(void *context, int device, void *handle,
					     void **send_comm, void **device_comm)
{
	(void)context;
	versions_no_device_comm(device_comm);
	return net_connect(device, handle, send_comm);
}

static enum nccl_result versions_accept_v7(void *listen_comm, void **recv_comm, void **device_comm)
{
	versions_no_device_comm(device_comm);
	return net_accept(listen_comm, recv_comm);
}

static enum nccl_result versions_register_v6(void *comm, void *data, int size, int type,
					     void **mhandle)
{
	*mhandle = NULL;
	if (size < 0)
		return NCCL_INVALID_ARGUMENT;
	return net_register(comm, data, (size_t)size, type, mhandle);
}

static enum nccl_result versions_send_v6(void *send_comm, void *data, int size, int tag,
					 void *mhandle, void **request)
{
	(void)tag;
	*request = NULL;
	if (size < 0)
		return NCCL_INVALID_ARGUMENT;
	return net_send(send_comm, data, (size_t)size, mhandle, request);
}

static enum nccl_result versions_send_v9(void *send_comm, void *data, size_t size, int tag,
					 void *mhandle, void **request)
{
	(void)tag;
	return net_send(send_comm, data, size, mhandle, request);
}

static enum nccl_result versions_send_v10(void *send_comm, void *data, size_t size, int tag,
					  void *mhandle, void *phandle, void **request)
{
	(void)tag, (void)phandle;
	return net_send(send_comm, data, size, mhandle, request);
}

static enum nccl_result versions_receive_v6(void *recv_comm, int count, void **data, int *sizes,
					    int *tags, void **mhandles, void **request)
{
	size_t size = (size_t)sizes[0];

	(void)tags;
	*request = NULL;
	if (sizes[0] < 0)
		return NCCL_INVALID_ARGUMENT;
	return net_receive(recv_comm, count, data, &size, mhandles, request);
}

static enum nccl_result versions_receive_v9(void *recv_comm, int count, void **data, size_t *sizes,
					    int *tags, void **mhandles, void **request)
{
	(void)tags;
	return net_receive(recv_comm, count, data, sizes, mhandles, request);
}

static enum nccl_result versions_receive_v10(void *recv_comm, int count, void **data, size_t *sizes,
					     int *tags, void **mhandles, void **phandles,
					     void **request)
{
	(void)tags, (void)phandles;
	return net_receive(recv_comm, count, data, sizes, mhandles, request);
}

static enum nccl_result versions_flush_v6(void *recv_comm, int count, void **data, int *sizes,
					  void **mhandles, void **request)
{
	return net_flush(recv_comm, count, data, sizes, mhandles, request);
}

EXPORTED const struct nccl_net_v6 ncclNetPlugin_v6 = {
	.name = NET_NAME,
	.init = versions_init_v6,
	.devices = net_devices,
	.getProperties = versions_properties_v6,
	.listen = net_listen,
	.connect = net_connect,
	.accept = net_accept,
	.regMr = versions_register_v6,
	.regMrDmaBuf = net_register_dmabuf,
	.deregMr = net_deregister,
	.isend = versions_send_v6,
	.irecv = versions_receive_v6,
	.iflush = versions_flush_v6,
	.test = net_test,
	.closeSend = net_close,
	.closeRecv = net_close,
	.closeListen = net_close_listen,
};

EXPORTED const struct nccl_net_v7 ncclNetPlugin_v7 = {
	.name = NET_NAME,
	.init = versions_init_v6,
	.devices = net_devices,
	.getProperties = versions_properties_v7,
	.listen = net_listen,
	.connect = versions_connect_v7,
	.accept = versions_accept_v7,
	.regMr = versions_register_v6,
	.regMrDmaBuf = net_register_dmabuf,
	.deregMr = net_deregister,
	.isend = versions_send_v6,
	.irecv = versions_receive_v6,
	.iflush = versions_flush_v6,
	.test = net_test,
	.closeSend = net_close,
	.closeRecv = net_close,
	.closeListen = net_close_listen,
};

EXPORTED const struct nccl_net_v8 ncclNetPlugin_v8 = {
	.name = NET_NAME,
	.init = versions_init_v6,
	.devices = net_devices,
	.getProperties = versions_properties_v8,
	.listen = net_listen,
	.connect = versions_connect_v7,
	.accept = versions_accept_v7,
	.regMr = net_register,
	.regMrDmaBuf = net_register_dmabuf,
	.deregMr = net_deregister,
	.isend = versions_send_v6,
	.irecv = versions_receive_v6,
	.iflush = versions_flush_v6,
	.test = net_test,
	.closeSend = net_close,
	.closeRecv = net_close,
	.closeListen = net_close_listen,
};

EXPORTED const struct nccl_net_v9 ncclNetPlugin_v9 = {
	.name = NET_NAME,
	.init = versions_init_v6,
	.devices = net_devices,
	.getProperties = versions_properties_v9,
	.listen = net_listen,
	.connect = versions_connect_v7,
	.accept = versions_accept_v7,
	.regMr = net_register,
	.regMrDmaBuf = net_register_dmabuf,
	.deregMr = net_deregister,
	.isend = versions_send_v9,
	.irecv = versions_receive_v9,
	.iflush = versions_flush_v6,
	.test = net_test,
	.closeSend = net_close,
	.closeRecv = net_close,
	.closeListen = net_close_listen,
};

EXPORTED const struct nccl_net_v10 ncclNetPlugin_v10 = {
	.name = NET_NAME,
	.init = versions_init_v10,
	.devices = net_devices,
	.getProperties = versions_properties_v9,
	.listen = net_listen,
	.connect = versions_connect_v10,
	.accept = versions_accept_v7,
	.regMr = net_register,
	.regMrDmaBuf = net_register_dmabuf,
	.deregMr = net_deregister,
	.isend = versions_send_v10,
	.irecv = versions_receive_v10,
	.iflush = versions_flush_v6,
	.test = net_test,
	.closeSend = net_close,
	.closeRecv = net_close,
	.closeListen = net_close_listen,
};

EXPORTED const struct nccl_net_v11 ncclNetPlugin_v11 = {
	.name = NET_NAME,
	.init = versions_init_v11,
	.devices = net_devices,
	.getProperties = versions_properties_v11,
	.listen = versions_listen_v11,
	.connect = versions_connect_v11,
	.accept = versions_accept_v7,
	.regMr = net_register,
	.regMrDmaBuf = net_register_dmabuf,
	.deregMr = net_deregister,
	.isend = versions_send_v10,
	.irecv = versions_receive_v10,
	.iflush = versions_flush_v6,
	.test = net_test,
	.closeSend = net_close,
	.closeRecv = net_close,
	.closeListen = net_close_listen,
	.finalize = net_finalize,
};

EXPORTED const struct nccl_net_v12 ncclNetPlugin_v12 = {
	.name = NET_NAME,
	.init = versions_init_v11,
	.devices = net_devices,
	.getProperties = net_properties,
	.listen = versions_listen_v11,
	.connect = versions_connect_v11,
	.accept = versions_accept_v7,
	.regMr = net_register,
	.regMrDmaBuf = net_register_dmabuf,
	.deregMr = net_deregister,
	.isend = versions_send_v10,
	.irecv = versions_receive_v10,
	.iflush = versions_flush_v6,
	.test = net_test,
	.closeSend = net_close,
	.closeRecv = net_close,
	.closeListen = net_close_listen,
	.finalize = net_finalize,
};
