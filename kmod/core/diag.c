// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Diagnosis of the path between two PCI devices. */
#include <linux/iommu.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>

#include "core.h"

static struct pci_dev *gdmabuf_diag_find(u32 address)
{
	return pci_get_domain_bus_and_slot(address >> 16, address >> 8 & 0xff, address & 0xff);
}

static bool gdmabuf_diag_is_above(struct pci_dev *bridge, struct pci_dev *pdev)
{
	for (; pdev; pdev = pci_upstream_bridge(pdev))
		if (pdev == bridge)
			return true;
	return false;
}

static struct pci_dev *gdmabuf_diag_common_bridge(struct pci_dev *a, struct pci_dev *b)
{
	for (a = pci_upstream_bridge(a); a; a = pci_upstream_bridge(a))
		if (gdmabuf_diag_is_above(a, b))
			return a;
	return NULL;
}

/* Whether the bridge sends requests or completions up instead of across. */
static bool gdmabuf_diag_redirects(struct pci_dev *bridge)
{
	int acs = pci_find_ext_capability(bridge, PCI_EXT_CAP_ID_ACS);
	u16 control = 0;

	if (acs)
		pci_read_config_word(bridge, acs + PCI_ACS_CTRL, &control);
	return control & (PCI_ACS_RR | PCI_ACS_CR);
}

static bool gdmabuf_diag_is_redirected(struct pci_dev *pdev, struct pci_dev *end)
{
	while ((pdev = pci_upstream_bridge(pdev)) && pdev != end)
		if (gdmabuf_diag_redirects(pdev))
			return true;
	return false;
}

/*
 * A driver that manages DMA itself, such as VFIO's, may change and free the device's domain at any
 * time.  With all other drivers the kernel keeps the default domain while the driver is bound, so
 * the domain is stable while the device is locked.
 */
static bool gdmabuf_diag_is_translated_locked(struct pci_dev *pdev)
{
	struct iommu_domain *domain;

	device_lock_assert(&pdev->dev);
	if (!device_iommu_mapped(&pdev->dev))
		return false;
	if (!pdev->driver || pdev->driver->driver_managed_dma)
		return true;
	domain = iommu_get_domain_for_dev(&pdev->dev);
	return domain && domain->type != IOMMU_DOMAIN_IDENTITY;
}

static int gdmabuf_diag_fill_iommu(struct gdmabuf_diag *cmd, struct pci_dev *peer)
{
	int err = device_lock_interruptible(&peer->dev);

	if (err)
		return err;
	if (gdmabuf_diag_is_translated_locked(peer))
		cmd->out_flags |= GDMABUF_DIAG_IOMMU;
	device_unlock(&peer->dev);
	return 0;
}

static int gdmabuf_diag_fill(struct gdmabuf_diag *cmd, struct pci_dev *gpu, struct pci_dev *peer)
{
	struct pci_dev *bridge = gdmabuf_diag_common_bridge(gpu, peer);

	cmd->out_flags = 0;
	cmd->out_distance = 0;
	if (bridge)
		cmd->out_flags |= GDMABUF_DIAG_SAME_BRIDGE;
	if (gdmabuf_diag_is_redirected(gpu, bridge) || gdmabuf_diag_is_redirected(peer, bridge))
		cmd->out_flags |= GDMABUF_DIAG_ACS;
	if (IS_ENABLED(CONFIG_PCI_P2PDMA)) {
		cmd->out_flags |= GDMABUF_DIAG_DISTANCE;
		cmd->out_distance = pci_p2pdma_distance(gpu, &peer->dev, false);
	}
	return gdmabuf_diag_fill_iommu(cmd, peer);
}

int gdmabuf_diag_pci(struct gdmabuf_diag *cmd)
{
	struct pci_dev *gpu = gdmabuf_diag_find(cmd->gpu), *peer = gdmabuf_diag_find(cmd->peer);
	int err = gpu && peer ? gdmabuf_diag_fill(cmd, gpu, peer) : -ENODEV;

	pci_dev_put(gpu);
	pci_dev_put(peer);
	return err;
}
