// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The DMA engine of QEMU's edu (docs/specs/edu), and its driver. */
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>

#include "devices.h"
#include "importer.h"

/* Registers, and the address of edu's memory for the DMA engine. */
#define EDU_ID		0x00
#define EDU_SOURCE	0x80
#define EDU_DESTINATION	0x88
#define EDU_COUNT	0x90
#define EDU_COMMAND	0x98
#define EDU_RUN		BIT(0)
#define EDU_FROM_EDU	BIT(1)
#define EDU_MEMORY	0x40000

/* edu drops the address bits beyond its dma_mask= parameter, which tests/vm/run sets. */
#define EDU_DMA_BITS	48
#define EDU_TIMEOUT_US	(5 * USEC_PER_SEC)

/* @lock also protects edu's registers and memory. */
static struct {
	struct mutex lock;
	struct pci_dev *pdev;
	void __iomem *regs;
	void *bounce;
	dma_addr_t bounce_address;
} edu = { .lock = __MUTEX_INITIALIZER(edu.lock) };

struct device *gdmabuf_importer_edu_get(void)
{
	struct device *dev = NULL;

	mutex_lock(&edu.lock);
	if (edu.pdev)
		dev = get_device(&edu.pdev->dev);
	mutex_unlock(&edu.lock);
	return dev;
}

int gdmabuf_importer_edu_lock(struct device *dev)
{
	mutex_lock(&edu.lock);
	if (edu.pdev && dev == &edu.pdev->dev)
		return 0;
	mutex_unlock(&edu.lock);
	return -EOPNOTSUPP;
}

void gdmabuf_importer_edu_unlock(void)
{
	mutex_unlock(&edu.lock);
}

static int gdmabuf_importer_edu_dma_locked(u64 source, u64 destination, u32 length, u64 command)
{
	u64 status;

	lockdep_assert_held(&edu.lock);
	writeq(source, edu.regs + EDU_SOURCE);
	writeq(destination, edu.regs + EDU_DESTINATION);
	writeq(length, edu.regs + EDU_COUNT);
	writeq(command | EDU_RUN, edu.regs + EDU_COMMAND);
	return read_poll_timeout(readq, status, !(status & EDU_RUN), 5 * USEC_PER_MSEC,
				 EDU_TIMEOUT_US, false, edu.regs + EDU_COMMAND);
}

static int gdmabuf_importer_edu_load_locked(u32 length)
{
	return gdmabuf_importer_edu_dma_locked(edu.bounce_address, EDU_MEMORY, length, 0);
}

static int gdmabuf_importer_edu_store_locked(u32 length)
{
	return gdmabuf_importer_edu_dma_locked(EDU_MEMORY, edu.bounce_address, length,
					       EDU_FROM_EDU);
}

/* Old data in edu's memory must not look like data from the dma-buf when a DMA does nothing. */
static int gdmabuf_importer_edu_poison_locked(u32 length)
{
	memset(edu.bounce, GDMABUF_IMPORTER_POISON, length);
	return gdmabuf_importer_edu_load_locked(length);
}

/*
 * Finds the DMA address of @offset.  Returns how many of @length bytes the segment has from @offset
 * on.
 */
static u32 gdmabuf_importer_edu_locate(struct sg_table *sgt, u64 offset, u32 length,
				       dma_addr_t *address)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (offset < sg_dma_len(sg)) {
			*address = sg_dma_address(sg) + offset;
			return min_t(u64, length, sg_dma_len(sg) - offset);
		}
		offset -= sg_dma_len(sg);
	}
	return 0;
}

/* Moves data between the dma-buf and edu's memory. */
static int gdmabuf_importer_edu_transfer_locked(struct sg_table *sgt, u64 offset, u32 length,
						u64 command)
{
	u32 done, part;
	dma_addr_t address;
	int err;

	for (done = 0; done < length; done += part) {
		part = gdmabuf_importer_edu_locate(sgt, offset + done, length - done, &address);
		if (!part)
			return -EIO;
		if (command & EDU_FROM_EDU)
			err = gdmabuf_importer_edu_dma_locked(EDU_MEMORY + done, address, part,
							      command);
		else
			err = gdmabuf_importer_edu_dma_locked(address, EDU_MEMORY + done, part,
							      command);
		if (err)
			return err;
	}
	return 0;
}

int gdmabuf_importer_edu_copy_locked(struct sg_table *sgt, u64 source, u64 destination, u32 length)
{
	int err = gdmabuf_importer_edu_poison_locked(length);

	if (!err)
		err = gdmabuf_importer_edu_transfer_locked(sgt, source, length, 0);
	if (!err)
		err = gdmabuf_importer_edu_transfer_locked(sgt, destination, length, EDU_FROM_EDU);
	return err;
}

int gdmabuf_importer_edu_read_locked(struct sg_table *sgt, u64 offset, u32 length, void *data)
{
	int err = gdmabuf_importer_edu_poison_locked(length);

	if (!err)
		err = gdmabuf_importer_edu_transfer_locked(sgt, offset, length, 0);
	if (!err)
		err = gdmabuf_importer_edu_store_locked(length);
	if (!err)
		memcpy(data, edu.bounce, length);
	return err;
}

int gdmabuf_importer_edu_write_locked(struct sg_table *sgt, u64 offset, u32 length,
				      const void *data)
{
	int err;

	memcpy(edu.bounce, data, length);
	err = gdmabuf_importer_edu_load_locked(length);
	return err ? err : gdmabuf_importer_edu_transfer_locked(sgt, offset, length, EDU_FROM_EDU);
}

static int gdmabuf_importer_edu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	void __iomem *regs;
	int err;

	if (edu.pdev)
		return -EBUSY;
	err = pcim_enable_device(pdev);
	if (err)
		return err;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(EDU_DMA_BITS));
	if (err)
		return err;
	regs = pcim_iomap(pdev, 0, 0);
	if (!regs)
		return -ENOMEM;
	if ((readl(regs + EDU_ID) & 0xff) != 0xed)
		return -ENODEV;
	edu.bounce = dmam_alloc_coherent(&pdev->dev, PAGE_SIZE, &edu.bounce_address, GFP_KERNEL);
	if (!edu.bounce)
		return -ENOMEM;
	pci_set_master(pdev);
	mutex_lock(&edu.lock);
	edu.regs = regs;
	edu.pdev = pdev;
	mutex_unlock(&edu.lock);
	return 0;
}

static void gdmabuf_importer_edu_remove(struct pci_dev *pdev)
{
	mutex_lock(&edu.lock);
	edu.pdev = NULL;
	mutex_unlock(&edu.lock);
	pci_clear_master(pdev);
}

static const struct pci_device_id edu_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{}
};

/* suppress_bind_attrs: attachments refer to the device, and need its driver. */
static struct pci_driver edu_driver = {
	.name = KBUILD_MODNAME,
	.id_table = edu_ids,
	.probe = gdmabuf_importer_edu_probe,
	.remove = gdmabuf_importer_edu_remove,
	.driver.suppress_bind_attrs = true,
};

int gdmabuf_importer_edu_register(void)
{
	return pci_register_driver(&edu_driver);
}

void gdmabuf_importer_edu_unregister(void)
{
	pci_unregister_driver(&edu_driver);
}
