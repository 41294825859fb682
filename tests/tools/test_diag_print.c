/* SPDX-License-Identifier: Apache-2.0 */
/* climport diag: the order of the sentences, and what is said once. */
#include "diag_fixture.h"

#include <stdbool.h>

#define NVME BRIDGES "/0000:02:02.0/0000:05:00.0"

/* A machine with a second device below the switch of the GPU. */
static void tree_put_two_peers(void)
{
	tree_put_machine();
	tree_put_device(BRIDGES "/0000:02:02.0", "0x1000\n", "0x060400\n", "pcieport");
	tree_put_device(NVME, "0x144d\n", "0x010802\n", "nvme");
}

/* The device 04:00.0 becomes a second GPU. */
static void tree_put_second_gpu(void)
{
	tree_put_in(NIC, "vendor", "0x10de\n");
	tree_put_in(NIC, "class", "0x030200\n");
	tree_put_driver(NIC, "nvidia");
	tree_put_bar(NIC, BAR_32G);
}

static int count_of(const char *sentence)
{
	int count = 0;

	for (const char *at = output; (at = strstr(at, sentence)); at++)
		count++;
	return count;
}

/* Whether @first is in the output, and before @second, which is, too. */
static bool is_before(const char *first, const char *second)
{
	const char *a = strstr(output, first), *b = strstr(output, second);

	if (a && b && a < b)
		return true;
	diag_says("-");
	return false;
}

TEST(verdict_first, "The verdicts are printed before all facts.")
{
	tree_put_two_peers();
	tree_remove_file(NIC "/driver");
	EXPECT_EQ(diag_of(NULL), 1);
	EXPECT_EQ(strncmp(output, "verdict: ", 9), 0);
	EXPECT_EQ(count_of("verdict: "), 2);
	EXPECT(is_before("verdict: 0000:05:00.0 can reach", "machine\n"));
}

TEST(verdict_first_no_gpu, "That there is no GPU is printed before all facts, too.")
{
	tree_put_machine();
	tree_remove_file("sys/bus/pci/devices/0000:03:00.0");
	EXPECT_EQ(diag_of(NULL), 1);
	EXPECT_EQ(strncmp(output, "verdict: there is no GPU", 24), 0);
}

TEST(stop_note_ok, "Of one section, stops are printed before notes, and notes before what is ok.")
{
	tree_put_machine();
	tree_remove_file("boot");
	tree_remove_file("sys/module/gdmabuf");
	tree_remove_file("dev/gdmabuf");
	EXPECT_EQ(diag_of(NULL), 1);
	EXPECT(is_before("  stop  gdmabuf is not loaded", "  note  The kernel's configuration"));
	EXPECT(is_before("  note  The kernel's configuration", "  ok    The NVIDIA driver"));
}

TEST(verdicts_together, "Devices with the same verdict share one sentence.")
{
	tree_put_two_peers();
	expect_says(0, "verdict: 0000:04:00.0, 0000:05:00.0 can reach the memory of "
		       "0000:03:00.0: nothing stops it.\n");
	EXPECT_EQ(count_of("verdict: "), 1);
}

TEST(verdicts_apart, "Devices with other reasons have verdicts of their own.")
{
	tree_put_two_peers();
	tree_put_in(NIC, "iommu_group/type", "DMA\n");
	EXPECT_EQ(diag_of(NULL), 0);
	EXPECT(diag_says("verdict: 0000:04:00.0 may reach the memory of 0000:03:00.0: "));
	EXPECT(diag_says("verdict: 0000:05:00.0 can reach the memory of 0000:03:00.0: "));
}

TEST(pairs_once, "What all pairs have is printed once.")
{
	tree_put_two_peers();
	expect_says(0, "GPU and device\n  ok    Both are below the bridge");
	EXPECT_EQ(count_of("Both are below the bridge"), 1);
	EXPECT_EQ(count_of("GPU 0000:03:00.0 and storage"), 0);
}

TEST(devices_named, "Several devices are listed once, with their kinds.")
{
	tree_put_two_peers();
	expect_says(0, "devices\n  0000:04:00.0  network (15b3:1017)\n"
		       "  0000:05:00.0  storage (144d:1017)\n");
}

TEST(pair_alone, "What one of several pairs has is printed with the pair.")
{
	tree_put_two_peers();
	tree_put_in(NVME, "numa_node", "1\n");
	expect_says(
		0,
		"GPU and device\n"
		"  note  GPU and device are on different NUMA nodes, 0 and 1, which is slow. Use "
		"slots of one socket.\n"
		"        - 0000:03:00.0 with 0000:05:00.0\n");
}

TEST(gpus_once, "What all GPUs have is printed once.")
{
	tree_put_machine();
	tree_put_second_gpu();
	expect_says(0, "GPUs\n");
	EXPECT_EQ(count_of("ok    The BAR is 32 GiB."), 1);
}

TEST(gpu_alone, "What one of several GPUs has is printed with the GPU.")
{
	tree_put_machine();
	tree_put_second_gpu();
	tree_put_bar(GPU, BAR_256M);
	EXPECT_EQ(diag_of(NULL), 0);
	EXPECT(diag_says("in the firmware.\n        - 0000:03:00.0\n"));
}

TEST(gpu_and_devices, "What one GPU has with every device is printed once, with the devices.")
{
	tree_put_two_peers();
	tree_put_second_gpu();
	tree_put_in(GPU, "numa_node", "1\n");
	EXPECT_EQ(diag_of(NULL), 0);
	EXPECT(diag_says("different NUMA nodes, 1 and 0, which is slow. Use slots of one socket.\n"
			 "        - 0000:03:00.0 with 0000:04:00.0, 0000:05:00.0\n"));
	EXPECT_EQ(count_of("different NUMA nodes, 1 and 0"), 1);
}

TEST(device_and_gpus, "What one device has with every GPU is printed once, with the GPUs.")
{
	tree_put_two_peers();
	tree_put_second_gpu();
	tree_put_driver(NVME, "");
	EXPECT_EQ(diag_of(NULL), 1);
	EXPECT(diag_says("Load the driver.\n        - 0000:03:00.0 with 0000:05:00.0\n"
			 "        - 0000:04:00.0 with 0000:05:00.0\n"));
	EXPECT_EQ(count_of("Load the driver."), 1);
}

TEST(peer_of_one_gpu, "A GPU that is named is no peer of itself.")
{
	tree_put_machine();
	tree_put_second_gpu();
	EXPECT_EQ(diag_of("04:00.0"), 0);
	EXPECT(diag_says("GPU 0000:03:00.0 and GPU 0000:04:00.0 (10de:1017)\n"));
	EXPECT(diag_says("verdict: no other device is present that could reach the memory of "
			 "0000:04:00.0.\n"));
}
