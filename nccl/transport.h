/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transport moves messages between processes.  The plugin knows transports by this table alone;
 * a transport knows neither NCCL's versions nor CUDA.
 *
 * A connection has a sender and a receiver.  Messages arrive in the order of the sends: the Nth
 * receive gets the Nth message.  The size of a message is the sender's; the receiver has room for as
 * much or more.
 *
 * Functions return 0 or a negative errno.  A connection is used by a thread at a time; different
 * connections may be used by different threads.
 */
#ifndef NCCL_TRANSPORT_H
#define NCCL_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct transport_device {
	const char *name;
	const char *pci_path; /* below /sys; NULL: no PCI device */
	uint64_t guid;
	int speed; /* Mbit/s */
	int port;
	float latency;	      /* us; 0: unknown */
	int max_connections;  /* ends; 0: no limit */
	uint64_t max_message; /* bytes; 0: no limit but the core's */
	bool takes_dmabufs;   /* map() may take ranges in dma-bufs: to be tried */
	bool is_proved;	      /* takes_dmabufs needs no trial */
	bool needs_flush;     /* after each receive into GPU memory: flush() */
};

/* Memory that messages are in: host memory, or a range of a dma-buf. */
struct transport_range {
	const void *base; /* the address by which messages name the first byte */
	size_t size;
	int fd;		 /* a dma-buf; -1: host memory */
	uint64_t offset; /* of the first byte in the dma-buf */
};

struct transport {
	const char *name;
	/* The devices of this process.  -ENODEV: there are none. */
	int (*open)(void);
	void (*close)(void);
	/*
	 * In a child of fork(): forgets what the parent has open.  The parent's connections and
	 * mappings are closed in the child without effect.
	 */
	void (*forget)(void);
	int (*device_count)(void);
	const struct transport_device *(*device)(int number);

	/* Fills a handle of NCCL_NET_HANDLE_SIZE bytes, for connect() in any process. */
	int (*listen)(int device, void *handle, void **listener);
	/*
	 * Never waits: *connection is NULL as long as the peer has not accepted.  The caller keeps
	 * the handle in place meanwhile.
	 */
	int (*connect)(int device, void *handle, void **connection);
	int (*accept)(void *listener, void **connection);
	void (*close_listener)(void *listener);
	/* Ends requests that have not ended. */
	void (*close_connection)(void *connection);

	/*
	 * Makes memory known to the device.  The transport duplicates range->fd if the descriptor is
	 * needed later.  A mapping is good for all connections of the device, or, if maps_alone is
	 * set, for one connection.
	 */
	int (*map)(int device, void *connection, const struct transport_range *range,
		   void **mapping);
	void (*unmap)(void *mapping);
	bool maps_alone;
	int (*connection_device)(void *connection);

	/* *request is NULL if there is no room now. */
	int (*send)(void *connection, void *data, size_t size, void *mapping, void **request);
	int (*receive)(void *connection, void *data, size_t size, void *mapping, void **request);
	/* *size: of the message.  A request that is done, or has failed, is gone. */
	int (*test)(void *request, bool *done, size_t *size);
	/*
	 * Makes what was received into a GPU's memory visible to the GPU.  *request is NULL if nothing is
	 * to be waited for.
	 */
	int (*flush)(void *connection, void *data, size_t size, void *mapping, void **request);
	/*
	 * Whether flush() works on mapped memory of a GPU.  Waits for the answer, for some seconds at most.
	 * NULL if every device is proved.
	 */
	int (*try_flush)(int device, void *data, void *mapping);
};

/* The transports of the plugin, the best first; NULL ends the list. */
extern const struct transport *const transports[];

extern const struct transport transport_inner;
extern const struct transport transport_libfabric;

#endif /* NCCL_TRANSPORT_H */
