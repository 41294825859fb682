/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport of another plugin: CLIMPORT_NET_INNER=FILE in the environment.
 *
 * The other plugin moves the messages, as under NCCL.  climport registers: a CUDA pointer becomes a
 * dma-buf, by CUDA or by the kernel module gdmabuf, and the other plugin gets the dma-buf.
 */
#include "nccl/log.h"
#include "nccl/net_abi.h"
#include "nccl/transport.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define OLDEST 6
#define NEWEST 12
#define MAX_DEVICES 32
#define TAG 0 /* of every message: one receive at a time needs none */

struct inner_connection {
	void *comm;
	int device;
	bool sends;
};

struct inner_listener {
	void *comm;
	int device;
};

struct inner_mapping {
	void *comm, *mhandle;
};

/* The newest version that the other plugin has. */
static struct {
	const void *table; /* struct nccl_net_vN; NULL: not open */
	int version;
	void *context;
	int device_count;
	struct transport_device devices[MAX_DEVICES];
} inner;

#define INNER(version) ((const struct nccl_net_v##version *)inner.table)

static const struct {
	enum nccl_result result;
	int error;
} inner_errors[] = {
	{ NCCL_SUCCESS, 0 },
	{ NCCL_INVALID_ARGUMENT, -EINVAL },
	{ NCCL_INVALID_USAGE, -EMSGSIZE },
	{ NCCL_INTERNAL_ERROR, -EPROTO },
	{ NCCL_REMOTE_ERROR, -ECONNRESET },
};

static int inner_error(enum nccl_result result)
{
	for (size_t i = 0; i < sizeof(inner_errors) / sizeof(inner_errors[0]); i++)
		if (inner_errors[i].result == result)
			return inner_errors[i].error;
	return -EIO;
}

static int inner_load(const char *file)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	char symbol[32];

	if (!library) {
		net_warn("CLIMPORT_NET_INNER: %s", dlerror());
		return -ENOENT;
	}
	for (inner.version = NEWEST; inner.version >= OLDEST && !inner.table; inner.version--) {
		snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", inner.version);
		inner.table = dlsym(library, symbol);
	}
	inner.version++;
	if (inner.table == &ncclNetPlugin_v12)
		inner.table = NULL; /* this plugin */
	if (inner.table)
		return 0;
	dlclose(library);
	net_warn("CLIMPORT_NET_INNER=%s is no other plugin of version 6 to 12", file);
	return -ENOENT;
}

static enum nccl_result inner_init(void)
{
	static struct nccl_net_config config = { .trafficClass = -1 };

	if (inner.version < 10)
		return INNER(6)->init(net_log());
	if (inner.version == 10)
		return INNER(10)->init(net_log(), NULL);
	return INNER(11)->init(&inner.context, 0, &config, net_log(), NULL);
}

/*
 * One version's properties, @flush of which is whether the core has to flush, and @bytes how large a
 * message may be.
 */
#define DESCRIBE(version, flush, bytes)                                      \
	do {                                                                 \
		struct nccl_net_properties_v##version p = { 0 };             \
		result = INNER(version)->getProperties(number, &p);          \
		*device = (struct transport_device){                         \
			.name = p.name,                                      \
			.pci_path = p.pciPath,                               \
			.guid = p.guid,                                      \
			.speed = p.speed,                                    \
			.port = p.port,                                      \
			.latency = p.latency,                                \
			.max_connections = p.maxComms,                       \
			.max_message = (bytes),                              \
			.takes_dmabufs = (p.ptrSupport & NCCL_PTR_DMABUF) && \
					 INNER(version)->regMrDmaBuf,        \
			.is_proved = true,                                   \
			.needs_flush = (flush),                              \
		};                                                           \
	} while (0)

static int inner_describe(int number)
{
	struct transport_device *device = &inner.devices[number];
	enum nccl_result result;

	if (inner.version == 6)
		DESCRIBE(6, false, 0);
	else if (inner.version == 7)
		DESCRIBE(7, false, 0);
	else if (inner.version == 8)
		DESCRIBE(8, false, 0);
	else if (inner.version < 11)
		DESCRIBE(9, p.forceFlush,
			 p.maxP2pBytes < p.maxCollBytes ? p.maxP2pBytes : p.maxCollBytes);
	else if (inner.version == 11)
		DESCRIBE(11, p.forceFlush,
			 p.maxP2pBytes < p.maxCollBytes ? p.maxP2pBytes : p.maxCollBytes);
	else
		DESCRIBE(12, p.forceFlush,
			 p.maxP2pBytes < p.maxCollBytes ? p.maxP2pBytes : p.maxCollBytes);
	return inner_error(result);
}

static int inner_describe_all(void)
{
	int count = 0, err = inner_error(INNER(6)->devices(&count));

	inner.device_count = count < MAX_DEVICES ? count : MAX_DEVICES;
	for (int i = 0; i < inner.device_count && !err; i++)
		err = inner_describe(i);
	if (!err && inner.device_count < 1) {
		net_warn("CLIMPORT_NET_INNER: the plugin %s has no device", INNER(6)->name);
		return -ENXIO; /* -ENODEV would be the next transport's turn */
	}
	return err;
}

static void inner_close(void)
{
	if (inner.version >= 11 && INNER(11)->finalize)
		INNER(11)->finalize(inner.context);
	inner.table = NULL;
}

/* Not closed as a library: the other plugin may have threads. */
static int inner_open(void)
{
	const char *file = getenv("CLIMPORT_NET_INNER");
	int err;

	if (!file || !*file)
		return -ENODEV;
	err = inner_load(file);
	if (err)
		return err;
	err = inner_error(inner_init());
	if (err) {
		inner.table = NULL;
		return err;
	}
	err = inner_describe_all();
	if (err)
		inner_close();
	else
		net_info("the plugin %s, version %d, moves the messages", INNER(6)->name,
			 inner.version);
	return err;
}

/* The other plugin knows forks, or not. */
static void inner_forget(void)
{
	inner.table = NULL;
}

static int inner_device_count(void)
{
	return inner.device_count;
}

static const struct transport_device *inner_device(int number)
{
	return &inner.devices[number];
}

static enum nccl_result inner_listen_comm(int device, void *handle, void **comm)
{
	if (inner.version < 11)
		return INNER(6)->listen(device, handle, comm);
	return INNER(11)->listen(inner.context, device, handle, comm);
}

static int inner_listen(int device, void *handle, void **result)
{
	struct inner_listener *listener = malloc(sizeof(*listener));
	int err;

	if (!listener)
		return -ENOMEM;
	listener->device = device;
	err = inner_error(inner_listen_comm(device, handle, &listener->comm));
	if (err)
		free(listener);
	else
		*result = listener;
	return err;
}

static enum nccl_result inner_connect_comm(int device, void *handle, void **comm)
{
	static struct nccl_net_config config = { .trafficClass = -1 };
	void *device_comm = NULL;

	if (inner.version == 6)
		return INNER(6)->connect(device, handle, comm);
	if (inner.version < 10)
		return INNER(7)->connect(device, handle, comm, &device_comm);
	if (inner.version == 10)
		return INNER(10)->connect(device, &config, handle, comm, &device_comm);
	return INNER(11)->connect(inner.context, device, handle, comm, &device_comm);
}

static enum nccl_result inner_accept_comm(void *listener, void **comm)
{
	void *device_comm = NULL;

	if (inner.version == 6)
		return INNER(6)->accept(listener, comm);
	return INNER(7)->accept(listener, comm, &device_comm);
}

static void inner_close_comm(void *comm, bool sends)
{
	if (sends)
		INNER(6)->closeSend(comm);
	else
		INNER(6)->closeRecv(comm);
}

static int inner_connection_new(void *comm, int device, bool sends, void **connection)
{
	struct inner_connection *new = malloc(sizeof(*new));

	if (!new) {
		inner_close_comm(comm, sends);
		return -ENOMEM;
	}
	*new = (struct inner_connection){ .comm = comm, .device = device, .sends = sends };
	*connection = new;
	return 0;
}

static int inner_connect(int device, void *handle, void **connection)
{
	void *comm = NULL;
	int err = inner_error(inner_connect_comm(device, handle, &comm));

	return err || !comm ? err : inner_connection_new(comm, device, true, connection);
}

static int inner_accept(void *handle, void **connection)
{
	struct inner_listener *listener = handle;
	void *comm = NULL;
	int err = inner_error(inner_accept_comm(listener->comm, &comm));

	return err || !comm ? err : inner_connection_new(comm, listener->device, false, connection);
}

static void inner_close_listener(void *handle)
{
	struct inner_listener *listener = handle;

	if (!inner.table)
		return;
	INNER(6)->closeListen(listener->comm);
	free(listener);
}

static void inner_close_connection(void *handle)
{
	struct inner_connection *connection = handle;

	if (!inner.table)
		return;
	inner_close_comm(connection->comm, connection->sends);
	free(connection);
}

static int inner_connection_device(void *connection)
{
	return ((struct inner_connection *)connection)->device;
}

static enum nccl_result inner_register_host(void *comm, void *data, size_t size, void **mhandle)
{
	if (inner.version >= 8)
		return INNER(8)->regMr(comm, data, size, NCCL_PTR_HOST, mhandle);
	if (size > INT_MAX)
		return NCCL_INVALID_ARGUMENT;
	return INNER(6)->regMr(comm, data, (int)size, NCCL_PTR_HOST, mhandle);
}

static int inner_map(int device, void *handle, const struct transport_range *range, void **result)
{
	struct inner_connection *connection = handle;
	struct inner_mapping *mapping = malloc(sizeof(*mapping));
	void *data = (void *)range->base;
	int err;

	(void)device;
	if (!mapping)
		return -ENOMEM;
	mapping->comm = connection->comm;
	if (range->fd < 0)
		err = inner_error(inner_register_host(connection->comm, data, range->size,
						      &mapping->mhandle));
	else
		err = inner_error(INNER(6)->regMrDmaBuf(connection->comm, data, range->size,
							NCCL_PTR_CUDA, range->offset, range->fd,
							&mapping->mhandle));
	if (err)
		free(mapping);
	else
		*result = mapping;
	return err;
}

static void inner_unmap(void *handle)
{
	struct inner_mapping *mapping = handle;

	if (!inner.table)
		return;
	INNER(6)->deregMr(mapping->comm, mapping->mhandle);
	free(mapping);
}

static void *inner_mhandle(void *mapping)
{
	return mapping ? ((struct inner_mapping *)mapping)->mhandle : NULL;
}

static int inner_send(void *handle, void *data, size_t size, void *mapping, void **request)
{
	void *comm = ((struct inner_connection *)handle)->comm, *mhandle = inner_mhandle(mapping);

	if (inner.version < 9)
		return inner_error(INNER(6)->isend(comm, data, (int)size, TAG, mhandle, request));
	if (inner.version == 9)
		return inner_error(INNER(9)->isend(comm, data, size, TAG, mhandle, request));
	return inner_error(INNER(10)->isend(comm, data, size, TAG, mhandle, NULL, request));
}

static int inner_receive(void *handle, void *data, size_t size, void *mapping, void **request)
{
	void *comm = ((struct inner_connection *)handle)->comm, *mhandle = inner_mhandle(mapping);
	int small = (int)size, tag = TAG;
	void *phandle = NULL;

	if (inner.version < 9)
		return inner_error(
			INNER(6)->irecv(comm, 1, &data, &small, &tag, &mhandle, request));
	if (inner.version == 9)
		return inner_error(INNER(9)->irecv(comm, 1, &data, &size, &tag, &mhandle, request));
	return inner_error(
		INNER(10)->irecv(comm, 1, &data, &size, &tag, &mhandle, &phandle, request));
}

static int inner_test(void *request, bool *done, size_t *size)
{
	int is_done = 0, bytes = 0;
	int err = inner_error(INNER(6)->test(request, &is_done, &bytes));

	*done = is_done;
	*size = (size_t)bytes;
	return err;
}

static int inner_flush(void *handle, void *data, size_t size, void *mapping, void **request)
{
	void *comm = ((struct inner_connection *)handle)->comm, *mhandle = inner_mhandle(mapping);
	int small = (int)size;

	return inner_error(INNER(6)->iflush(comm, 1, &data, &small, &mhandle, request));
}

const struct transport transport_inner = {
	.name = "inner",
	.open = inner_open,
	.close = inner_close,
	.forget = inner_forget,
	.device_count = inner_device_count,
	.device = inner_device,
	.listen = inner_listen,
	.connect = inner_connect,
	.accept = inner_accept,
	.close_listener = inner_close_listener,
	.close_connection = inner_close_connection,
	.map = inner_map,
	.unmap = inner_unmap,
	.maps_alone = true,
	.connection_device = inner_connection_device,
	.send = inner_send,
	.receive = inner_receive,
	.test = inner_test,
	.flush = inner_flush,
};
