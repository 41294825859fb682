/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/net.h"
#include "nccl/choice.h"
#include "nccl/log.h"
#include "nccl/memory.h"
#include "nccl/trial.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CONNECTIONS 65536
#define MAX_DEVICES 32

/* The transport that opened; counted by net_init() and net_finalize().  NULL in a child of fork(). */
static pthread_mutex_t net_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct transport *net_transport;
static int net_users;
static bool net_knows_forks;
/* Kinds of memory of each device, NCCL_PTR_*; what the core is told. */
static int net_kinds[MAX_DEVICES];

static const struct {
	int error;
	enum nccl_result result;
} net_results[] = {
	{ 0, NCCL_SUCCESS },
	{ -EINVAL, NCCL_INVALID_ARGUMENT },
	{ -EMSGSIZE, NCCL_INVALID_USAGE }, /* a receive is smaller than the message */
	{ -EPROTO, NCCL_INTERNAL_ERROR },  /* the core broke a rule of the interface */
	{ -ECANCELED, NCCL_REMOTE_ERROR }, /* the peer closed the connection */
	{ -ECONNRESET, NCCL_REMOTE_ERROR },
	{ -ECONNABORTED, NCCL_REMOTE_ERROR },
	{ -ECONNREFUSED, NCCL_REMOTE_ERROR },
	{ -EHOSTUNREACH, NCCL_REMOTE_ERROR },
	{ -ENOTCONN, NCCL_REMOTE_ERROR },
	{ -EPIPE, NCCL_REMOTE_ERROR },
	{ -ETIMEDOUT, NCCL_REMOTE_ERROR },
};

static enum nccl_result net_result(int error)
{
	for (size_t i = 0; i < sizeof(net_results) / sizeof(net_results[0]); i++)
		if (net_results[i].error == error)
			return net_results[i].result;
	return NCCL_SYSTEM_ERROR;
}

static enum nccl_result net_result_of(const char *what, int error)
{
	if (error)
		net_warn("%s: %s", what, net_error_text(error));
	return net_result(error);
}

/* A child has no thread of the plugin's, and may not touch the parent's connections. */
static void net_forget(void)
{
	pthread_mutex_init(&net_lock, NULL);
	net_memory_forget();
	/* Another thread may have been opening a transport. */
	for (size_t i = 0; transports[i]; i++)
		transports[i]->forget();
	net_transport = NULL;
	net_users = 0;
}

/*
 * With CLIMPORT_NET_OWN_EXPORT=1 the core hands over CUDA pointers, and climport makes the dma-bufs;
 * without, the core makes dma-bufs if the driver can.
 */
static int net_find_kinds(int device)
{
	const char *own = choice_get("CLIMPORT_NET_OWN_EXPORT");

	if (!trial_passes(net_transport, device))
		return NCCL_PTR_HOST;
	if (own && !strcmp(own, "1"))
		return NCCL_PTR_HOST | NCCL_PTR_CUDA;
	return NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF;
}

static int net_device_count(void)
{
	int count = net_transport ? net_transport->device_count() : 0;

	return count < MAX_DEVICES ? count : MAX_DEVICES;
}

static int net_open(void)
{
	int err = -ENODEV;

	/* -ENODEV: the transport has nothing here, and the next is asked. */
	for (size_t i = 0; transports[i] && err == -ENODEV; i++) {
		err = transports[i]->open();
		if (!err)
			net_transport = transports[i];
		else
			net_info("transport %s: %s", transports[i]->name, net_error_text(err));
	}
	for (int i = 0; i < net_device_count(); i++)
		net_kinds[i] = net_find_kinds(i);
	return err;
}

enum nccl_result net_init(nccl_log_fn log)
{
	int err = 0;

	pthread_mutex_lock(&net_lock);
	net_log_to(log);
	if (!net_knows_forks)
		net_knows_forks = !pthread_atfork(NULL, NULL, net_forget);
	if (!net_transport)
		err = net_open();
	if (!err)
		net_users++;
	pthread_mutex_unlock(&net_lock);
	return net_result(err);
}

/* The context says that an init succeeded: the core also finalizes after an init that failed. */
enum nccl_result net_finalize(void *context)
{
	if (!context)
		return NCCL_SUCCESS;
	pthread_mutex_lock(&net_lock);
	if (net_users > 0 && !--net_users) {
		net_transport->close();
		net_transport = NULL;
	}
	pthread_mutex_unlock(&net_lock);
	return NCCL_SUCCESS;
}

enum nccl_result net_devices(int *count)
{
	*count = net_device_count();
	return NCCL_SUCCESS;
}

static int net_max_connections(const struct transport_device *device)
{
	int max = device->max_connections;

	return max && max < MAX_CONNECTIONS ? max : MAX_CONNECTIONS;
}

static size_t net_max_bytes(const struct transport_device *device)
{
	uint64_t max = device->max_message;

	return max && max < NCCL_NET_MAX_BYTES ? max : NCCL_NET_MAX_BYTES;
}

enum nccl_result net_properties(int number, struct nccl_net_properties_v12 *properties)
{
	const struct transport_device *device;

	if (number < 0 || number >= net_device_count())
		return NCCL_INVALID_ARGUMENT;
	device = net_transport->device(number);
	*properties = (struct nccl_net_properties_v12){
		.name = device->name,
		.pciPath = device->pci_path,
		.guid = device->guid,
		.ptrSupport = net_kinds[number],
		.regIsGlobal = !net_transport->maps_alone,
		.forceFlush = device->needs_flush,
		.latency = device->latency,
		.speed = device->speed,
		.port = device->port,
		.maxComms = net_max_connections(device),
		.maxRecvs = 1,
		.vProps = { .ndevs = 1, .devs = { number } },
		.maxP2pBytes = net_max_bytes(device),
		.maxCollBytes = net_max_bytes(device),
		.maxMultiRequestSize = 1,
		.railId = NCCL_NET_ID_NONE,
		.planeId = NCCL_NET_ID_NONE,
	};
	return NCCL_SUCCESS;
}

/* A child of fork() has the parent's connections, and no transport. */
static enum nccl_result net_not_open(const char *what)
{
	net_warn("%s without a network: a child of fork() has to init", what);
	return NCCL_INTERNAL_ERROR;
}

enum nccl_result net_listen(int device, void *handle, void **listen_comm)
{
	if (!net_transport)
		return net_not_open("listen");
	memset(handle, 0, NCCL_NET_HANDLE_SIZE);
	return net_result_of("listen", net_transport->listen(device, handle, listen_comm));
}

enum nccl_result net_connect(int device, void *handle, void **send_comm)
{
	*send_comm = NULL;
	if (!net_transport)
		return net_not_open("connect");
	return net_result_of("connect", net_transport->connect(device, handle, send_comm));
}

enum nccl_result net_accept(void *listen_comm, void **recv_comm)
{
	*recv_comm = NULL;
	if (!net_transport)
		return net_not_open("accept");
	return net_result_of("accept", net_transport->accept(listen_comm, recv_comm));
}

enum nccl_result net_close_listen(void *listen_comm)
{
	if (listen_comm && net_transport)
		net_transport->close_listener(listen_comm);
	return NCCL_SUCCESS;
}

enum nccl_result net_close(void *comm)
{
	if (!comm || !net_transport)
		return NCCL_SUCCESS;
	net_memory_forget_connection(comm);
	net_transport->close_connection(comm);
	return NCCL_SUCCESS;
}

enum nccl_result net_register(void *comm, void *data, size_t size, int type, void **mhandle)
{
	struct net_memory *memory = NULL;
	int err = -EINVAL;

	*mhandle = NULL;
	if (!net_transport)
		return net_not_open("regMr");
	if (type == NCCL_PTR_HOST || type == NCCL_PTR_CUDA)
		err = net_memory_register(
			net_transport, net_transport->connection_device(comm), comm, data, size,
			type == NCCL_PTR_CUDA ? NET_MEMORY_CUDA : NET_MEMORY_HOST, &memory);
	*mhandle = memory;
	return net_result_of("regMr", err);
}

enum nccl_result net_register_dmabuf(void *comm, void *data, size_t size, int type, uint64_t offset,
				     int fd, void **mhandle)
{
	const struct transport_range range = {
		.base = data, .size = size, .fd = fd, .offset = offset
	};
	struct net_memory *memory = NULL;
	int err = -EINVAL;

	*mhandle = NULL;
	if (!net_transport)
		return net_not_open("regMrDmaBuf");
	if (fd >= 0 && (type == NCCL_PTR_HOST || type == NCCL_PTR_CUDA))
		err = net_memory_register_dmabuf(net_transport,
						 net_transport->connection_device(comm), comm,
						 &range, &memory);
	*mhandle = memory;
	return net_result_of("regMrDmaBuf", err);
}

enum nccl_result net_deregister(void *comm, void *mhandle)
{
	(void)comm;
	net_memory_unregister(mhandle);
	return NCCL_SUCCESS;
}

enum nccl_result net_send(void *comm, void *data, size_t size, void *mhandle, void **request)
{
	*request = NULL;
	if (!net_transport)
		return net_not_open("isend");
	return net_result_of("isend", net_transport->send(comm, data, size,
							  net_memory_mapping(mhandle), request));
}

/* The place of the request may hold a hint of the core's, which does not concern the plugin. */
enum nccl_result net_receive(void *comm, int count, void **data, const size_t *sizes,
			     void **mhandles, void **request)
{
	*request = NULL;
	if (!net_transport)
		return net_not_open("irecv");
	if (count != 1)
		return net_result_of("irecv", -EPROTO);
	return net_result_of("irecv",
			     net_transport->receive(comm, data[0], sizes[0],
						    net_memory_mapping(mhandles[0]), request));
}

/* A request of NULL: there is nothing to wait for. */
enum nccl_result net_flush(void *comm, int count, void **data, const int *sizes, void **mhandles,
			   void **request)
{
	*request = NULL;
	if (!net_transport)
		return net_not_open("iflush");
	if (count != 1 || sizes[0] < 0)
		return net_result_of("iflush", -EPROTO);
	return net_result_of("iflush",
			     net_transport->flush(comm, data[0], (size_t)sizes[0],
						  net_memory_mapping(mhandles[0]), request));
}

enum nccl_result net_test(void *request, int *done, int *sizes)
{
	bool is_done = false;
	size_t size = 0;
	int err;

	*done = 0;
	if (!net_transport)
		return net_not_open("test");
	err = net_transport->test(request, &is_done, &size);
	if (err)
		return net_result_of("test", err);
	*done = is_done;
	if (is_done && sizes)
		sizes[0] = (int)size;
	return NCCL_SUCCESS;
}
