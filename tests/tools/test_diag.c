/* SPDX-License-Identifier: Apache-2.0 */
/* climport diag: the GPU, the GPU's driver and BAR, and the program's arguments. */
#include "diag_fixture.h"
#include "import/nvidia/rm/rm_refusal.h"

#include <limits.h>
#include <unistd.h>

/* Replaces the GPU's vendor and driver. */
static void tree_put_gpu(const char *vendor, const char *driver)
{
	tree_put_in(GPU, "vendor", vendor);
	tree_put_driver(GPU, driver);
}

TEST(nothing, "If nothing stops a peer, the exit status is 0 and the verdict is `can reach`.")
{
	tree_put_machine();
	expect_says(
		0,
		"verdict: 0000:04:00.0 can reach the memory of 0000:03:00.0: nothing stops it.\n");
	EXPECT(!strstr(output, "  note"));
	EXPECT(!strstr(output, "  stop"));
}

TEST(no_gpu, "Without a GPU the exit status is 1.")
{
	tree_put_machine();
	tree_remove_file("sys/bus/pci/devices/0000:03:00.0");
	expect_says(1, "verdict: there is no GPU:");
}

TEST(no_pci, "A machine without PCI has no GPU.")
{
	tree_put_machine();
	tree_remove_file("sys");
	expect_says(1, "verdict: there is no GPU:");
}

TEST(console, "A display without prefetchable memory is no GPU.")
{
	tree_put_machine();
	tree_put_in(GPU, "vendor", "0x1a03\n");
	tree_put_bar(GPU, "0x00000000f5000000 0x00000000f5ffffff 0x0000000000040200");
	expect_says(1, "verdict: there is no GPU:");
}

TEST(no_driver, "A GPU without the NVIDIA driver is a stop.")
{
	tree_put_machine();
	tree_remove_file("sys/module/nvidia");
	expect_says(1, "stop  The NVIDIA driver is not loaded.");
	EXPECT(diag_says(
		"cannot reach the memory of 0000:03:00.0: the NVIDIA driver is not loaded.\n"));
}

TEST(closed_driver, "An NVIDIA driver that /proc calls closed is a stop.")
{
	tree_put_machine();
	tree_put("proc/driver/nvidia/version",
		 "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86\n");
	expect_says(1, "stop  The NVIDIA driver 570.86.10 is the closed one");
	EXPECT(diag_says(
		"cannot reach the memory of 0000:03:00.0: the NVIDIA driver is closed.\n"));
}

TEST(closed_taint, "A driver that taints as proprietary is closed.")
{
	tree_put_machine();
	tree_remove_file("proc/driver");
	tree_put("sys/module/nvidia/taint", "POE\n");
	expect_says(1, "stop  The NVIDIA driver 570.86.10 is the closed one");
}

TEST(open_taint, "A driver that does not taint as proprietary is open.")
{
	tree_put_machine();
	tree_remove_file("proc/driver");
	expect_says(0, "ok    The NVIDIA driver 570.86.10 is the open one, and new enough.");
}

TEST(old_driver, "A driver before 535 is a stop.")
{
	tree_put_machine();
	tree_put("sys/module/nvidia/version", "530.41.03\n");
	expect_says(1, "stop  The NVIDIA driver 530.41.03 is too old");
}

TEST(other_driver, "A GPU with a foreign driver is a stop.")
{
	tree_put_machine();
	tree_put_driver(GPU, "vfio-pci");
	expect_says(1, "stop  The GPU's driver is vfio-pci. Bind the GPU to nvidia.");
}

TEST(other_vendor, "An AMD GPU is judged without gdmabuf and NVIDIA's driver.")
{
	tree_put_machine();
	tree_put_gpu("0x1002\n", "amdgpu");
	tree_remove_file("sys/module");
	EXPECT_EQ(diag_of(NULL), 0);
	EXPECT(!strstr(output, "gdmabuf"));
}

TEST(other_vendor_p2pdma, "amdgpu shares no GPU memory without PCI_P2PDMA.")
{
	tree_put_machine();
	tree_put_gpu("0x1002\n", "amdgpu");
	tree_put("boot/config-6.12.0", "# CONFIG_PCI_P2PDMA is not set\n");
	expect_says(1, "memory of 0000:03:00.0: the kernel is built without PCI_P2PDMA.\n");
}

TEST(other_vendor_no_config, "Without the kernel's configuration amdgpu's verdict is a `may`.")
{
	tree_put_machine();
	tree_put_gpu("0x1002\n", "amdgpu");
	tree_remove_file("boot");
	expect_says(0, "nothing known stops it, but the kernel's configuration is unknown.\n");
}

TEST(other_vendor_driver, "A driver that does not share GPU memory is a stop.")
{
	tree_put_machine();
	tree_put_gpu("0x8086\n", "i915");
	expect_says(1, "stop  The GPU's driver is i915.");
}

TEST(small_bar, "A BAR of 256 MiB is a note.")
{
	tree_put_machine();
	tree_put_bar(GPU, BAR_256M);
	expect_says(0, "note  The BAR is 256 MiB, and most GPUs have more memory.");
}

TEST(large_bar, "A larger BAR is not, and its size is printed.")
{
	tree_put_machine();
	expect_says(0, "ok    The BAR is 32 GiB.");
}

TEST(no_bar, "A BAR without an address is a stop.")
{
	tree_put_machine();
	tree_put_bar(GPU, "0x0000000000000000 0x00000007ffffffff 0x000000002014220c");
	expect_says(1, "stop  The GPU has no BAR with an address for its memory.");
}

TEST(no_address, "A peer that is no PCI address gives exit status 2.")
{
	tree_put_machine();
	EXPECT_EQ(diag_of("eth0"), 2);
	EXPECT_EQ(diag_of("04:00.0x"), 2);
	EXPECT_EQ(diag_of("04:20.0"), 2);
}

TEST(no_such_device, "An unknown device gives exit status 2.")
{
	tree_put_machine();
	EXPECT_EQ(diag_of("77:00.0"), 2);
}

/* Runs climport diag; @output is the standard output. */
static int diag_run(const char *arguments)
{
	char line[2 * PATH_MAX];
	FILE *pipe;

	if (!getenv("CLIMPORT"))
		test_skip("CLIMPORT does not name the program");
	snprintf(line, sizeof(line), "'%s' diag %s 2>/dev/null", getenv("CLIMPORT"), arguments);
	pipe = popen(line, "r");
	EXPECT(pipe != NULL);
	output[fread(output, 1, sizeof(output) - 1, pipe)] = '\0';
	return pclose(pipe) >> 8;
}

TEST(usage, "An unknown option, what is no folder and a second address give exit status 2.")
{
	tree_put_machine();
	EXPECT_EQ(diag_run("--sys " TREE), 2);
	EXPECT_EQ(diag_run("--sysfs"), 2);
	EXPECT_EQ(diag_run("--sysfs " TREE "/none"), 2);
	EXPECT_EQ(diag_run("--sysfs /dev/null"), 2);
	EXPECT_EQ(diag_run("--sysfs " TREE " 03:00.0 04:00.0"), 2);
}

TEST(program, "climport diag reads below the folder of --sysfs.")
{
	tree_put_machine();
	EXPECT_EQ(diag_run("--sysfs " TREE " 77:00.0"), 2);
	EXPECT_EQ(diag_run("--sysfs " TREE " 04:00.0"), 1);
	tree_put_gpu("0x1002\n", "amdgpu");
	EXPECT_EQ(diag_run("--sysfs " TREE " 04:00.0"), 0);
}

TEST(nvidia_imports,
     "For a GPU of NVIDIA's that would import a dma-buf of another GPU, diag gives the "
     "reason of the layer's refusal.")
{
	tree_put_machine();
	tree_put_in(GPU, "vendor", "0x1002\n");
	tree_put_driver(GPU, "amdgpu");
	tree_put_in(NIC, "class", "0x030200\n");
	tree_put_in(NIC, "vendor", "0x10de\n");
	diag_of(NULL);
	EXPECT(diag_says("climport imports no dma-buf of other devices' memory on a GPU of "
			 "NVIDIA's: " RM_REFUSAL ".\n"));
}
