// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A platform device, which may import but does no DMA. */
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/platform_device.h>

#include "devices.h"

static struct platform_device *device;

static struct platform_driver driver = {
	.driver.name = KBUILD_MODNAME,
	.driver.suppress_bind_attrs = true,
};

static const struct platform_device_info info = {
	.name = KBUILD_MODNAME,
	.id = PLATFORM_DEVID_NONE,
	.dma_mask = DMA_BIT_MASK(64),
};

struct device *gdmabuf_importer_platform_get(void)
{
	return get_device(&device->dev);
}

int gdmabuf_importer_platform_register(void)
{
	int err = platform_driver_register(&driver);

	if (err)
		return err;
	device = platform_device_register_full(&info);
	err = PTR_ERR_OR_ZERO(device);
	if (err)
		platform_driver_unregister(&driver);
	return err;
}

void gdmabuf_importer_platform_unregister(void)
{
	platform_device_unregister(device);
	platform_driver_unregister(&driver);
}
