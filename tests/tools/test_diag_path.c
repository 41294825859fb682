/* SPDX-License-Identifier: Apache-2.0 */
/* climport diag: the path between a GPU and a peer, and the kernel's part. */
#include "diag_fixture.h"

#include <errno.h>

TEST(iommu, "A translating IOMMU makes the verdict a `may`.")
{
	tree_put_machine();
	tree_put_in(NIC, "iommu_group/type", "DMA-FQ\n");
	expect_says(0, "note  An IOMMU translates the device's DMA (DMA-FQ)");
	EXPECT(diag_says("nothing known stops it, but an IOMMU translates the DMA.\n"));
}

TEST(no_iommu, "Without an IOMMU group the DMA of a device is not translated.")
{
	tree_put_machine();
	tree_remove_file(NIC "/iommu_group");
	expect_says(0, "ok    No IOMMU translates the device's DMA.");
}

TEST(iommu_unmanaged, "A device that a program uses through VFIO cannot import.")
{
	tree_put_machine();
	tree_put_in(NIC, "iommu_group/type", "unmanaged\n");
	expect_says(1, "stop  The device's IOMMU group is unmanaged");
}

TEST(acs, "ACS redirection on the path makes the verdict a `may`, with the bridge's address.")
{
	tree_put_machine();
	tree_put_config(BRIDGES "/0000:02:01.0", 0x1d);
	expect_says(0, "up to the root complex, in: 0000:02:01.0.");
	EXPECT(diag_says(
		"nothing known stops it, but ACS sends the DMA through the root complex.\n"));
}

TEST(acs_both, "Every bridge that redirects is named once.")
{
	tree_put_machine();
	tree_put_config(BRIDGES, 0x04);
	tree_put_config(BRIDGES "/0000:02:00.0", 0x08);
	tree_put_config(BRIDGES "/0000:02:01.0", 0x20);
	expect_says(0, "in: 0000:02:00.0; 0000:01:00.0; 0000:02:01.0.");
}

TEST(acs_above, "ACS above the common bridge does not matter.")
{
	tree_put_machine();
	tree_put_config("sys/devices/pci0000:00/0000:00:01.0", 0x1d);
	expect_says(0, "ok    No bridge between the two redirects (ACS).");
}

TEST(acs_other_bits, "Source validation and upstream forwarding redirect nothing by themselves.")
{
	tree_put_machine();
	tree_put_config(BRIDGES "/0000:02:01.0", 0x11);
	expect_says(0, "ok    No bridge between the two redirects (ACS).");
}

TEST(acs_unknown, "If only 64 bytes of a bridge can be read, ACS is unknown.")
{
	char head[64] = "";

	tree_put_machine();
	tree_put_bytes(BRIDGES "/0000:02:01.0/config", head, sizeof(head));
	expect_says(0, "note  Only root can read whether ACS redirects.");
	EXPECT(diag_says("nothing known stops it, but ACS is unknown.\n"));
}

TEST(acs_loop, "A loop in the list of capabilities ends the search.")
{
	unsigned char bytes[4096] = { [0x100] = 0x01, [0x103] = 0x10 };

	tree_put_machine();
	tree_put_bytes(BRIDGES "/0000:02:01.0/config", bytes, sizeof(bytes));
	EXPECT_EQ(diag_of(NULL), 0);
}

TEST(same_switch, "The deepest common bridge is named.")
{
	tree_put_machine();
	expect_says(0, "ok    Both are below the bridge 0000:01:00.0.");
}

TEST(other_root, "Different root ports make the verdict a `may`.")
{
	tree_put_machine();
	tree_put_device("sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0", "0x144d\n",
			"0x010802\n", "nvme");
	EXPECT_EQ(diag_of("0000:05:00.0"), 0);
	EXPECT(diag_says("note  No bridge is common to both: the path leads through the root"));
	EXPECT(diag_says("nothing known stops it, but the path leads through the root complex.\n"));
}

TEST(other_host_bridge, "Different host bridges are named as different.")
{
	tree_put_machine();
	tree_put_device("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0", "0x144d\n",
			"0x010802\n", "nvme");
	EXPECT_EQ(diag_of("81:00.0"), 0);
	EXPECT(diag_says("note  No bridge is common to both, nor the host bridge:"));
}

TEST(numa, "Different NUMA nodes are a note.")
{
	tree_put_machine();
	tree_put_in(NIC, "numa_node", "1\n");
	expect_says(0, "note  GPU and device are on different NUMA nodes, 0 and 1");
}

TEST(no_p2pdma,
     "A kernel without PCI_P2PDMA is a note, because NVIDIA's memory does not need PCI_P2PDMA.")
{
	tree_put_machine();
	tree_put("boot/config-6.12.0", "# CONFIG_PCI_P2PDMA is not set\n");
	expect_says(0, "note  The kernel is built without PCI_P2PDMA");
}

TEST(config_modules, "The kernel's options may be in /lib/modules.")
{
	tree_put_machine();
	tree_remove_file("boot");
	tree_put("lib/modules/6.12.0/config", "CONFIG_PCI_P2PDMA=y\n");
	expect_says(0, "ok    The kernel is built with PCI_P2PDMA.");
}

TEST(no_config, "The options that the kernel was built with can be unknown.")
{
	tree_put_machine();
	tree_remove_file("boot");
	expect_says(0, "note  The kernel's configuration is unknown: neither /boot/config-6.12.0");
}

TEST(no_gdmabuf, "An unloaded gdmabuf is a stop.")
{
	tree_put_machine();
	tree_remove_file("sys/module/gdmabuf");
	tree_remove_file("dev/gdmabuf");
	expect_says(1, "stop  gdmabuf is not loaded");
	EXPECT(diag_says("cannot reach the memory of 0000:03:00.0: gdmabuf is not loaded.\n"));
}

TEST(no_provider, "gdmabuf without a provider is a stop.")
{
	tree_put_machine();
	gpu_page_size = 0;
	expect_says(1, "stop  gdmabuf has no provider of GPU memory.");
}

TEST(gdmabuf_refuses, "A /dev/gdmabuf that cannot be used is a stop, with the error.")
{
	tree_put_machine();
	caps_error = EACCES;
	expect_says(1,
		    "stop  gdmabuf is loaded, but /dev/gdmabuf cannot be used: Permission denied.");
}

TEST(peer_driver, "A device without a driver is a stop.")
{
	tree_put_machine();
	tree_put_driver(NIC, "");
	expect_says(1, "stop  The device has no driver to import a dma-buf.");
}

TEST(sound, "Sound devices and other functions of the GPU are not peers.")
{
	tree_put_machine();
	tree_put_device(BRIDGES "/0000:02:00.0/0000:03:00.1", "0x10de\n", "0x048000\n", "x");
	tree_put_in(NIC, "class", "0x040300\n");
	expect_says(0, "verdict: no other device is present that could reach the memory of "
		       "0000:03:00.0.\n");
}

TEST(capture, "A capture card is a peer.")
{
	tree_put_machine();
	tree_put_in(NIC, "class", "0x040000\n");
	expect_says(0, "GPU 0000:03:00.0 and multimedia 0000:04:00.0 (15b3:1017)\n");
}

TEST(two_gpus, "Two GPUs are peers of each other.")
{
	tree_put_machine();
	tree_put_in(NIC, "vendor", "0x10de\n");
	tree_put_in(NIC, "class", "0x030000\n");
	tree_put_driver(NIC, "nvidia");
	tree_put_bar(NIC, BAR_32G);
	expect_says(0, "verdict: 0000:04:00.0 can reach the memory of 0000:03:00.0");
	EXPECT(diag_says("verdict: 0000:03:00.0 can reach the memory of 0000:04:00.0"));
}

TEST(named_peer, "A device named on the command line is judged, whatever the class.")
{
	tree_put_machine();
	tree_put_in(NIC, "class", "0x0c0330\n");
	EXPECT_EQ(diag_of("04:00.0"), 0);
	EXPECT(diag_says("verdict: 0000:04:00.0 can reach the memory of 0000:03:00.0"));
}
