// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A device without a driver, a bus or a class: dev_driver_string() is empty. */
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/module.h>

#include "devices.h"

static struct device *device;
static struct device_dma_parameters parameters;
static u64 dma_mask = DMA_BIT_MASK(64);

struct device *gdmabuf_importer_bare_get(void)
{
	return get_device(device);
}

int gdmabuf_importer_bare_register(void)
{
	device = root_device_register(KBUILD_MODNAME "_bare");
	if (IS_ERR(device))
		return PTR_ERR(device);
	device->dma_mask = &dma_mask;
	device->coherent_dma_mask = dma_mask;
	device->dma_parms = &parameters;
	return 0;
}

void gdmabuf_importer_bare_unregister(void)
{
	root_device_unregister(device);
}
