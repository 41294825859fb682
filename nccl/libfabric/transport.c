/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/libfabric/fabric.h"

static const struct transport_device *fabric_properties(int number)
{
	return &fabric_device_at(number)->properties;
}

const struct transport transport_libfabric = {
	.name = "libfabric",
	.open = fabric_open,
	.close = fabric_close,
	.forget = fabric_forget,
	.device_count = fabric_device_count,
	.device = fabric_properties,
	.listen = fabric_listen,
	.connect = fabric_connect,
	.accept = fabric_accept,
	.close_listener = fabric_close_listener,
	.close_connection = fabric_close_connection,
	.map = fabric_map,
	.unmap = fabric_unmap,
	.connection_device = fabric_connection_device,
	.send = fabric_send,
	.receive = fabric_receive,
	.test = fabric_test,
	.flush = fabric_flush,
	.try_flush = fabric_try_flush,
};
