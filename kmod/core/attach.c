// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Decides which devices may import GPU memory.  Host memory has struct pages, and is open to all
 * devices.
 *
 * The scatterlists of GPU memory have no struct pages.  A dynamic importer declares by peer2peer
 * that page-less scatterlists are safe.  A static importer cannot declare anything, and nothing
 * outside the driver's code tells: two drivers of a bus, with equal DMA operations, may differ (of
 * DRM's, etnaviv looks for struct pages and nouveau does not).  So static importers are known by
 * the names of their drivers.  The list has the drivers whose code was read and tried.  A driver
 * under a new name is refused.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/string.h>

#include "compat.h"
#include "core.h"

static char static_importers[256] = "vivid uvcvideo gdmabuf_importer";
module_param_string(static_importers, static_importers, sizeof(static_importers), 0600);
MODULE_PARM_DESC(static_importers,
		 "static importers that may have GPU memory: they need no struct pages; * for all");

enum { P2PDMA_OFF, P2PDMA_WARN, P2PDMA_ENFORCE };

static unsigned int p2pdma = P2PDMA_WARN;
module_param(p2pdma, uint, 0600);
MODULE_PARM_DESC(p2pdma,
		 "PCI device without known way from the GPU: 0 import, 1 import and warn, 2 refuse");

/* The list consists of words, and may end with the newline that echo writes to a parameter. */
static bool gdmabuf_attach_in_list(const char *name)
{
	size_t length = strlen(name), word;
	const char *at = skip_spaces(static_importers);

	for (; *at; at = skip_spaces(at + word)) {
		word = strcspn(at, " \t\n");
		if (word == length && !strncmp(at, name, length))
			return true;
	}
	return false;
}

/*
 * The name is not dev_driver_string(), which falls back to the bus or the class of a device without
 * a driver.
 */
static bool gdmabuf_attach_may_be_static(struct device *dev)
{
	const struct device_driver *driver = READ_ONCE(dev->driver);
	bool allowed;

	kernel_param_lock(THIS_MODULE);
	allowed = gdmabuf_attach_in_list("*") || (driver && gdmabuf_attach_in_list(driver->name));
	kernel_param_unlock(THIS_MODULE);
	if (!allowed)
		pr_debug("%s: %s is not in static_importers\n", dev_name(dev),
			 driver ? driver->name : "a device without driver");
	return allowed;
}

/* The importer's PCI device, or the PCI device above the importer: a USB camera's controller. */
static struct pci_dev *gdmabuf_attach_pci_parent(struct device *dev)
{
	for (; dev; dev = dev->parent)
		if (dev_is_pci(dev))
			return to_pci_dev(dev);
	return NULL;
}

static struct pci_dev *gdmabuf_attach_owner_of(phys_addr_t address)
{
	struct pci_dev *pdev = NULL;
	int i;

	for_each_pci_dev(pdev)
		for (i = 0; i < PCI_STD_NUM_BARS; i++)
			if (pci_resource_len(pdev, i) && address >= pci_resource_start(pdev, i) &&
			    address <= pci_resource_end(pdev, i))
				return pdev;
	return NULL;
}

static int gdmabuf_attach_check_distance(struct gdmabuf_pin *pin, struct device *dev)
{
	struct pci_dev *gpu, *peer = gdmabuf_attach_pci_parent(dev);
	int distance = 0;

	if (p2pdma == P2PDMA_OFF || !IS_ENABLED(CONFIG_PCI_P2PDMA) || !peer)
		return 0;
	gpu = gdmabuf_attach_owner_of(pin->runs[0].start);
	if (gpu)
		distance = pci_p2pdma_distance(gpu, &peer->dev, false);
	pci_dev_put(gpu);
	if (distance >= 0)
		return 0;
	if (p2pdma == P2PDMA_ENFORCE)
		return -EOPNOTSUPP;
	dev_warn_once(dev, "the kernel knows no peer-to-peer way to this GPU memory\n");
	return 0;
}

/*
 * Revocable memory is for CPUs only.  When the driver's callback returns, the pages belong to
 * somebody else.  A device cannot stop DMA at once, and waiting in the callback would stop the GPU
 * driver for all processes.
 */
int gdmabuf_attach_gpu(struct dma_buf *dmabuf, struct dma_buf_attachment *attachment)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	bool dynamic = attachment->importer_ops;

	if (buffer->flags & GDMABUF_REVOCABLE)
		return -EOPNOTSUPP;
	if (dynamic && !attachment->peer2peer)
		return -EOPNOTSUPP;
	if (!dynamic && !gdmabuf_attach_may_be_static(attachment->dev))
		return -EOPNOTSUPP;
	return gdmabuf_attach_check_distance(buffer->pin, attachment->dev);
}

/*
 * Pages with attachments never move, so pinning has nothing to do.  Both operations must exist
 * nevertheless: otherwise older kernels map for a dynamic importer at attach, and never unmap.
 */
int gdmabuf_attach_pin(struct dma_buf_attachment *attachment)
{
	return 0;
}

void gdmabuf_attach_unpin(struct dma_buf_attachment *attachment)
{
}
