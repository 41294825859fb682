/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between NCCL or RCCL and a net plugin, versions 6 to 12.
 *
 * The core (NCCL or RCCL) loads the plugin and looks for the symbol ncclNetPlugin_vN of the newest
 * version that the core knows.  The symbol is a table of functions, struct nccl_net_vN.  Names of
 * members are the core's, so that the core's documents help the reader.
 *
 * A version differs from the version before:
 *   v7   connect and accept get a place for a handle of device code; getDeviceMr, irecvConsumed
 *   v8   regMr takes a size_t; the property regIsGlobal
 *   v9   isend and irecv take a size_t; makeVDevice; forceFlush, vProps, maxP2pBytes, maxCollBytes
 *   v10  init gets the profiler, connect a configuration, isend and irecv a handle of the profiler
 *   v11  a context for each communicator: init, finalize, setNetAttr; maxMultiRequestSize
 *   v12  eight devices in vProps; railId, planeId
 *
 * The sizes and offsets below are those of x86-64 and AArch64.
 */
#ifndef NCCL_NET_ABI_H
#define NCCL_NET_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum nccl_result {
	NCCL_SUCCESS,
	NCCL_UNHANDLED_CUDA_ERROR,
	NCCL_SYSTEM_ERROR,
	NCCL_INTERNAL_ERROR,
	NCCL_INVALID_ARGUMENT,
	NCCL_INVALID_USAGE,
	NCCL_REMOTE_ERROR,
	NCCL_IN_PROGRESS,
};

enum nccl_log_level {
	NCCL_LOG_NONE,
	NCCL_LOG_VERSION,
	NCCL_LOG_WARN,
	NCCL_LOG_INFO,
	NCCL_LOG_ABORT,
	NCCL_LOG_TRACE,
};

/* Subsystems of log lines. */
#define NCCL_LOG_INIT 0x1ul
#define NCCL_LOG_NET 0x10ul

typedef void (*nccl_log_fn)(enum nccl_log_level level, unsigned long subsystems, const char *file,
			    int line, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The profiler's callback; the plugin reports no events. */
typedef enum nccl_result (*nccl_profiler_fn)(void **event, int type, void *parent, int64_t id,
					     void *data);

/* Kinds of memory: bits of ptrSupport, and the argument type of regMr. */
#define NCCL_PTR_HOST 0x1
#define NCCL_PTR_CUDA 0x2
#define NCCL_PTR_DMABUF 0x4

#define NCCL_NET_HANDLE_SIZE 128      /* bytes of a handle that listen fills */
#define NCCL_NET_MAX_REQUESTS 32      /* of a connection, at once */
#define NCCL_NET_MAX_BYTES (1l << 30) /* of a message */
#define NCCL_NET_ID_NONE (-1)

struct nccl_net_properties_v6 {
	const char *name;
	const char *pciPath; /* a folder below /sys; NULL: no PCI device */
	uint64_t guid;
	int ptrSupport;
	int speed; /* Mbit/s */
	int port;
	float latency; /* us; 0: the core's default */
	int maxComms;
	int maxRecvs;
};

struct nccl_net_properties_v7 {
	const char *name;
	const char *pciPath;
	uint64_t guid;
	int ptrSupport;
	int speed;
	int port;
	float latency;
	int maxComms;
	int maxRecvs;
	int netDeviceType; /* 0: the host drives the device */
	int netDeviceVersion;
};

struct nccl_net_properties_v8 {
	const char *name;
	const char *pciPath;
	uint64_t guid;
	int ptrSupport;
	int regIsGlobal; /* a registration is good for every connection of the device */
	int speed;
	int port;
	float latency;
	int maxComms;
	int maxRecvs;
	int netDeviceType;
	int netDeviceVersion;
};

struct nccl_net_v_device_v9 {
	int ndevs;
	int devs[4];
};

struct nccl_net_properties_v9 {
	const char *name;
	const char *pciPath;
	uint64_t guid;
	int ptrSupport;
	int regIsGlobal;
	int forceFlush;
	int speed;
	int port;
	float latency;
	int maxComms;
	int maxRecvs;
	int netDeviceType;
	int netDeviceVersion;
	struct nccl_net_v_device_v9 vProps;
	size_t maxP2pBytes;
	size_t maxCollBytes;
};

struct nccl_net_properties_v11 {
	const char *name;
	const char *pciPath;
	uint64_t guid;
	int ptrSupport;
	int regIsGlobal;
	int forceFlush;
	int speed;
	int port;
	float latency;
	int maxComms;
	int maxRecvs;
	int netDeviceType;
	int netDeviceVersion;
	struct nccl_net_v_device_v9 vProps;
	size_t maxP2pBytes;
	size_t maxCollBytes;
	int maxMultiRequestSize;
};

struct nccl_net_v_device_v12 {
	int ndevs;
	int devs[8];
};

struct nccl_net_properties_v12 {
	const char *name;
	const char *pciPath;
	uint64_t guid;
	int ptrSupport;
	int regIsGlobal;
	int forceFlush;
	int speed;
	int port;
	float latency;
	int maxComms;
	int maxRecvs;
	int netDeviceType;
	int netDeviceVersion;
	struct nccl_net_v_device_v12 vProps;
	size_t maxP2pBytes;
	size_t maxCollBytes;
	int maxMultiRequestSize;
	int16_t railId;
	int16_t planeId;
};

/* connect of v10, and init of v11 and v12. */
struct nccl_net_config {
	int trafficClass;
};

/*
 * connect and accept return success and no connection as long as there is none yet; the core calls
 * again.  isend and irecv return success and no request if there is no room; the core calls again.
 * test sets *done, and the sizes of what was received; a request that is done is gone.
 */
struct nccl_net_v6 {
	const char *name;
	enum nccl_result (*init)(nccl_log_fn log);
	enum nccl_result (*devices)(int *count);
	enum nccl_result (*getProperties)(int device, struct nccl_net_properties_v6 *properties);
	enum nccl_result (*listen)(int device, void *handle, void **listen_comm);
	enum nccl_result (*connect)(int device, void *handle, void **send_comm);
	enum nccl_result (*accept)(void *listen_comm, void **recv_comm);
	enum nccl_result (*regMr)(void *comm, void *data, int size, int type, void **mhandle);
	enum nccl_result (*regMrDmaBuf)(void *comm, void *data, size_t size, int type,
					uint64_t offset, int fd, void **mhandle);
	enum nccl_result (*deregMr)(void *comm, void *mhandle);
	enum nccl_result (*isend)(void *send_comm, void *data, int size, int tag, void *mhandle,
				  void **request);
	enum nccl_result (*irecv)(void *recv_comm, int count, void **data, int *sizes, int *tags,
				  void **mhandles, void **request);
	enum nccl_result (*iflush)(void *recv_comm, int count, void **data, int *sizes,
				   void **mhandles, void **request);
	enum nccl_result (*test)(void *request, int *done, int *sizes);
	enum nccl_result (*closeSend)(void *send_comm);
	enum nccl_result (*closeRecv)(void *recv_comm);
	enum nccl_result (*closeListen)(void *listen_comm);
};

struct nccl_net_v7 {
	const char *name;
	enum nccl_result (*init)(nccl_log_fn log);
	enum nccl_result (*devices)(int *count);
	enum nccl_result (*getProperties)(int device, struct nccl_net_properties_v7 *properties);
	enum nccl_result (*listen)(int device, void *handle, void **listen_comm);
	enum nccl_result (*connect)(int device, void *handle, void **send_comm, void **device_comm);
	enum nccl_result (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
	enum nccl_result (*regMr)(void *comm, void *data, int size, int type, void **mhandle);
	enum nccl_result (*regMrDmaBuf)(void *comm, void *data, size_t size, int type,
					uint64_t offset, int fd, void **mhandle);
	enum nccl_result (*deregMr)(void *comm, void *mhandle);
	enum nccl_result (*isend)(void *send_comm, void *data, int size, int tag, void *mhandle,
				  void **request);
	enum nccl_result (*irecv)(void *recv_comm, int count, void **data, int *sizes, int *tags,
				  void **mhandles, void **request);
	enum nccl_result (*iflush)(void *recv_comm, int count, void **data, int *sizes,
				   void **mhandles, void **request);
	enum nccl_result (*test)(void *request, int *done, int *sizes);
	enum nccl_result (*closeSend)(void *send_comm);
	enum nccl_result (*closeRecv)(void *recv_comm);
	enum nccl_result (*closeListen)(void *listen_comm);
	enum nccl_result (*getDeviceMr)(void *comm, void *mhandle, void **device_mhandle);
	enum nccl_result (*irecvConsumed)(void *recv_comm, int count, void *request);
};

struct nccl_net_v8 {
	const char *name;
	enum nccl_result (*init)(nccl_log_fn log);
	enum nccl_result (*devices)(int *count);
	enum nccl_result (*getProperties)(int device, struct nccl_net_properties_v8 *properties);
	enum nccl_result (*listen)(int device, void *handle, void **listen_comm);
	enum nccl_result (*connect)(int device, void *handle, void **send_comm, void **device_comm);
	enum nccl_result (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
	enum nccl_result (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
	enum nccl_result (*regMrDmaBuf)(void *comm, void *data, size_t size, int type,
					uint64_t offset, int fd, void **mhandle);
	enum nccl_result (*deregMr)(void *comm, void *mhandle);
	enum nccl_result (*isend)(void *send_comm, void *data, int size, int tag, void *mhandle,
				  void **request);
	enum nccl_result (*irecv)(void *recv_comm, int count, void **data, int *sizes, int *tags,
				  void **mhandles, void **request);
	enum nccl_result (*iflush)(void *recv_comm, int count, void **data, int *sizes,
				   void **mhandles, void **request);
	enum nccl_result (*test)(void *request, int *done, int *sizes);
	enum nccl_result (*closeSend)(void *send_comm);
	enum nccl_result (*closeRecv)(void *recv_comm);
	enum nccl_result (*closeListen)(void *listen_comm);
	enum nccl_result (*getDeviceMr)(void *comm, void *mhandle, void **device_mhandle);
	enum nccl_result (*irecvConsumed)(void *recv_comm, int count, void *request);
};

struct nccl_net_v9 {
	const char *name;
	enum nccl_result (*init)(nccl_log_fn log);
	enum nccl_result (*devices)(int *count);
	enum nccl_result (*getProperties)(int device, struct nccl_net_properties_v9 *properties);
	enum nccl_result (*listen)(int device, void *handle, void **listen_comm);
	enum nccl_result (*connect)(int device, void *handle, void **send_comm, void **device_comm);
	enum nccl_result (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
	enum nccl_result (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
	enum nccl_result (*regMrDmaBuf)(void *comm, void *data, size_t size, int type,
					uint64_t offset, int fd, void **mhandle);
	enum nccl_result (*deregMr)(void *comm, void *mhandle);
	enum nccl_result (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
				  void **request);
	enum nccl_result (*irecv)(void *recv_comm, int count, void **data, size_t *sizes, int *tags,
				  void **mhandles, void **request);
	enum nccl_result (*iflush)(void *recv_comm, int count, void **data, int *sizes,
				   void **mhandles, void **request);
	enum nccl_result (*test)(void *request, int *done, int *sizes);
	enum nccl_result (*closeSend)(void *send_comm);
	enum nccl_result (*closeRecv)(void *recv_comm);
	enum nccl_result (*closeListen)(void *listen_comm);
	enum nccl_result (*getDeviceMr)(void *comm, void *mhandle, void **device_mhandle);
	enum nccl_result (*irecvConsumed)(void *recv_comm, int count, void *request);
	enum nccl_result (*makeVDevice)(int *device, struct nccl_net_v_device_v9 *of);
};

struct nccl_net_v10 {
	const char *name;
	enum nccl_result (*init)(nccl_log_fn log, nccl_profiler_fn profiler);
	enum nccl_result (*devices)(int *count);
	enum nccl_result (*getProperties)(int device, struct nccl_net_properties_v9 *properties);
	enum nccl_result (*listen)(int device, void *handle, void **listen_comm);
	enum nccl_result (*connect)(int device, struct nccl_net_config *config, void *handle,
				    void **send_comm, void **device_comm);
	enum nccl_result (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
	enum nccl_result (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
	enum nccl_result (*regMrDmaBuf)(void *comm, void *data, size_t size, int type,
					uint64_t offset, int fd, void **mhandle);
	enum nccl_result (*deregMr)(void *comm, void *mhandle);
	enum nccl_result (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
				  void *phandle, void **request);
	enum nccl_result (*irecv)(void *recv_comm, int count, void **data, size_t *sizes, int *tags,
				  void **mhandles, void **phandles, void **request);
	enum nccl_result (*iflush)(void *recv_comm, int count, void **data, int *sizes,
				   void **mhandles, void **request);
	enum nccl_result (*test)(void *request, int *done, int *sizes);
	enum nccl_result (*closeSend)(void *send_comm);
	enum nccl_result (*closeRecv)(void *recv_comm);
	enum nccl_result (*closeListen)(void *listen_comm);
	enum nccl_result (*getDeviceMr)(void *comm, void *mhandle, void **device_mhandle);
	enum nccl_result (*irecvConsumed)(void *recv_comm, int count, void *request);
	enum nccl_result (*makeVDevice)(int *device, struct nccl_net_v_device_v9 *of);
};

struct nccl_net_v11 {
	const char *name;
	enum nccl_result (*init)(void **context, uint64_t communicator,
				 struct nccl_net_config *config, nccl_log_fn log,
				 nccl_profiler_fn profiler);
	enum nccl_result (*devices)(int *count);
	enum nccl_result (*getProperties)(int device, struct nccl_net_properties_v11 *properties);
	enum nccl_result (*listen)(void *context, int device, void *handle, void **listen_comm);
	enum nccl_result (*connect)(void *context, int device, void *handle, void **send_comm,
				    void **device_comm);
	enum nccl_result (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
	enum nccl_result (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
	enum nccl_result (*regMrDmaBuf)(void *comm, void *data, size_t size, int type,
					uint64_t offset, int fd, void **mhandle);
	enum nccl_result (*deregMr)(void *comm, void *mhandle);
	enum nccl_result (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
				  void *phandle, void **request);
	enum nccl_result (*irecv)(void *recv_comm, int count, void **data, size_t *sizes, int *tags,
				  void **mhandles, void **phandles, void **request);
	enum nccl_result (*iflush)(void *recv_comm, int count, void **data, int *sizes,
				   void **mhandles, void **request);
	enum nccl_result (*test)(void *request, int *done, int *sizes);
	enum nccl_result (*closeSend)(void *send_comm);
	enum nccl_result (*closeRecv)(void *recv_comm);
	enum nccl_result (*closeListen)(void *listen_comm);
	enum nccl_result (*getDeviceMr)(void *comm, void *mhandle, void **device_mhandle);
	enum nccl_result (*irecvConsumed)(void *recv_comm, int count, void *request);
	enum nccl_result (*makeVDevice)(int *device, struct nccl_net_v_device_v9 *of);
	enum nccl_result (*finalize)(void *context);
	enum nccl_result (*setNetAttr)(void *context, void *attributes);
};

struct nccl_net_v12 {
	const char *name;
	enum nccl_result (*init)(void **context, uint64_t communicator,
				 struct nccl_net_config *config, nccl_log_fn log,
				 nccl_profiler_fn profiler);
	enum nccl_result (*devices)(int *count);
	enum nccl_result (*getProperties)(int device, struct nccl_net_properties_v12 *properties);
	enum nccl_result (*listen)(void *context, int device, void *handle, void **listen_comm);
	enum nccl_result (*connect)(void *context, int device, void *handle, void **send_comm,
				    void **device_comm);
	enum nccl_result (*accept)(void *listen_comm, void **recv_comm, void **device_comm);
	enum nccl_result (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
	enum nccl_result (*regMrDmaBuf)(void *comm, void *data, size_t size, int type,
					uint64_t offset, int fd, void **mhandle);
	enum nccl_result (*deregMr)(void *comm, void *mhandle);
	enum nccl_result (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
				  void *phandle, void **request);
	enum nccl_result (*irecv)(void *recv_comm, int count, void **data, size_t *sizes, int *tags,
				  void **mhandles, void **phandles, void **request);
	enum nccl_result (*iflush)(void *recv_comm, int count, void **data, int *sizes,
				   void **mhandles, void **request);
	enum nccl_result (*test)(void *request, int *done, int *sizes);
	enum nccl_result (*closeSend)(void *send_comm);
	enum nccl_result (*closeRecv)(void *recv_comm);
	enum nccl_result (*closeListen)(void *listen_comm);
	enum nccl_result (*getDeviceMr)(void *comm, void *mhandle, void **device_mhandle);
	enum nccl_result (*irecvConsumed)(void *recv_comm, int count, void *request);
	enum nccl_result (*makeVDevice)(int *device, struct nccl_net_v_device_v12 *of);
	enum nccl_result (*finalize)(void *context);
	enum nccl_result (*setNetAttr)(void *context, void *attributes);
};

#define NCCL_ABI_OFFSET(version, member, offset)                                \
	static_assert(offsetof(struct nccl_net_v##version, member) == (offset), \
		      #member " of version " #version)
#define NCCL_ABI_PROPERTY(version, member, offset)                                         \
	static_assert(offsetof(struct nccl_net_properties_v##version, member) == (offset), \
		      "property " #member " of version " #version)

/* What all versions share. */
#define NCCL_ABI_NET(version, bytes)                                                       \
	static_assert(sizeof(struct nccl_net_v##version) == (bytes), "version " #version); \
	NCCL_ABI_OFFSET(version, regMr, 56);                                               \
	NCCL_ABI_OFFSET(version, regMrDmaBuf, 64);                                         \
	NCCL_ABI_OFFSET(version, deregMr, 72);                                             \
	NCCL_ABI_OFFSET(version, isend, 80);                                               \
	NCCL_ABI_OFFSET(version, irecv, 88);                                               \
	NCCL_ABI_OFFSET(version, iflush, 96);                                              \
	NCCL_ABI_OFFSET(version, test, 104);                                               \
	NCCL_ABI_OFFSET(version, closeListen, 128)

#define NCCL_ABI_PROPERTIES(version, bytes, at_speed, at_latency, at_receives)  \
	static_assert(sizeof(struct nccl_net_properties_v##version) == (bytes), \
		      "properties of version " #version);                       \
	NCCL_ABI_PROPERTY(version, ptrSupport, 24);                             \
	NCCL_ABI_PROPERTY(version, speed, at_speed);                            \
	NCCL_ABI_PROPERTY(version, latency, at_latency);                        \
	NCCL_ABI_PROPERTY(version, maxRecvs, at_receives)

NCCL_ABI_NET(6, 136);
NCCL_ABI_NET(7, 152);
NCCL_ABI_NET(8, 152);
NCCL_ABI_NET(9, 160);
NCCL_ABI_NET(10, 160);
NCCL_ABI_NET(11, 176);
NCCL_ABI_NET(12, 176);
NCCL_ABI_OFFSET(7, getDeviceMr, 136);
NCCL_ABI_OFFSET(9, makeVDevice, 152);
NCCL_ABI_OFFSET(11, finalize, 160);
NCCL_ABI_OFFSET(12, setNetAttr, 168);

NCCL_ABI_PROPERTIES(6, 48, 28, 36, 44);
NCCL_ABI_PROPERTIES(7, 56, 28, 36, 44);
NCCL_ABI_PROPERTIES(8, 64, 32, 40, 48);
NCCL_ABI_PROPERTIES(9, 104, 36, 44, 52);
NCCL_ABI_PROPERTIES(11, 112, 36, 44, 52);
NCCL_ABI_PROPERTIES(12, 128, 36, 44, 52);
NCCL_ABI_PROPERTY(9, vProps, 64);
NCCL_ABI_PROPERTY(9, maxP2pBytes, 88);
NCCL_ABI_PROPERTY(9, maxCollBytes, 96);
NCCL_ABI_PROPERTY(11, maxMultiRequestSize, 104);
NCCL_ABI_PROPERTY(12, maxP2pBytes, 104);
NCCL_ABI_PROPERTY(12, maxCollBytes, 112);
NCCL_ABI_PROPERTY(12, maxMultiRequestSize, 120);
NCCL_ABI_PROPERTY(12, railId, 124);

/* Each version of the plugin. */
extern const struct nccl_net_v6 ncclNetPlugin_v6;
extern const struct nccl_net_v7 ncclNetPlugin_v7;
extern const struct nccl_net_v8 ncclNetPlugin_v8;
extern const struct nccl_net_v9 ncclNetPlugin_v9;
extern const struct nccl_net_v10 ncclNetPlugin_v10;
extern const struct nccl_net_v11 ncclNetPlugin_v11;
extern const struct nccl_net_v12 ncclNetPlugin_v12;

#endif /* NCCL_NET_ABI_H */
