/* SPDX-License-Identifier: Apache-2.0 */
/* Each test makes a machine where nothing stops peer-to-peer DMA, and spoils one thing. */
#include "harness.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/gdmabuf.h>

#include "diag.h"

#define TREE "diag-tree"
#define BRIDGES "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
#define GPU BRIDGES "/0000:02:00.0/0000:03:00.0"
#define NIC BRIDGES "/0000:02:01.0/0000:04:00.0"
#define NO_ACS (-1)

static char output[1 << 16];
static struct gdmabuf_caps kernel_caps;
static struct gdmabuf_diag kernel_diag;
static int caps_error, diag_error; /* errno, 0 to answer */

int __wrap_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
	(void)fd;
	errno = request == GDMABUF_CAPS	  ? caps_error
		: request == GDMABUF_DIAG ? diag_error
					  : ENOTTY;
	if (errno)
		return -1;
	if (request == GDMABUF_CAPS) {
		*(struct gdmabuf_caps *)argument = kernel_caps;
		return 0;
	}
	((struct gdmabuf_diag *)argument)->out_flags = kernel_diag.out_flags;
	((struct gdmabuf_diag *)argument)->out_distance = kernel_diag.out_distance;
	return 0;
}

/* Makes the folders above, and returns where in the tree it is. */
static const char *tree_make_path(const char *name)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), TREE "/%s", name);
	for (char *slash = path; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	return path;
}

static void tree_put_bytes(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(tree_make_path(name), "w");

	EXPECT(file != NULL);
	EXPECT_EQ(fwrite(bytes, 1, size, file), size);
	EXPECT_EQ(fclose(file), 0);
}

static void tree_put(const char *name, const char *text)
{
	tree_put_bytes(name, text, strlen(text));
}

static void tree_put_in(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	tree_put(path, text);
}

static void tree_remove_file(const char *name)
{
	char command[2 * PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '" TREE "/%s'", name);
	EXPECT_EQ(system(command), 0);
}

/* As root reads it: error reporting, then ACS with these control bits. */
static void tree_put_config(const char *dir, int control)
{
	unsigned char bytes[4096] = { [0x100] = 0x01, [0x102] = 0x01 };
	char path[PATH_MAX];

	if (control != NO_ACS) {
		bytes[0x102] = 0x81;
		bytes[0x103] = 0x14;
		bytes[0x148] = 0x0d;
		bytes[0x14a] = 0x01;
		bytes[0x14e] = (unsigned char)control;
	}
	snprintf(path, sizeof(path), "%s/config", dir);
	tree_put_bytes(path, bytes, sizeof(bytes));
}

static void tree_put_driver(const char *dir, const char *driver)
{
	char path[PATH_MAX], target[PATH_MAX];

	snprintf(path, sizeof(path), "%s/driver", dir);
	snprintf(target, sizeof(target), "/sys/bus/pci/drivers/%s", driver);
	tree_remove_file(path);
	if (*driver)
		EXPECT_EQ(symlink(target, tree_make_path(path)), 0);
}

static void tree_put_bar(const char *dir, const char *line)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n%s\n"
		 "0x0000000000000000 0x0000000000000000 0x0000000000000000\n",
		 line);
	tree_put_in(dir, "resource", text);
}

static void tree_put_device(const char *dir, const char *vendor, const char *class,
			    const char *driver)
{
	char link[PATH_MAX], target[2 * PATH_MAX];

	tree_put_in(dir, "vendor", vendor);
	tree_put_in(dir, "device", "0x1017\n");
	tree_put_in(dir, "class", class);
	tree_put_in(dir, "numa_node", "0\n");
	tree_put_in(dir, "iommu_group/type", "identity\n");
	tree_put_config(dir, NO_ACS);
	tree_put_driver(dir, driver);
	snprintf(link, sizeof(link), "sys/bus/pci/devices/%s", strrchr(dir, '/') + 1);
	snprintf(target, sizeof(target), "../../../../%s", dir);
	EXPECT_EQ(symlink(target, tree_make_path(link)), 0);
}

static void tree_put_memlock(const char *bytes)
{
	char line[128];

	snprintf(line, sizeof(line), "Max locked memory         %-20s %-20s bytes\n", bytes, bytes);
	tree_put("proc/self/limits", line);
}

#define BAR_256M "0x000000e000000000 0x000000e00fffffff 0x000000000014220c"
#define BAR_32G "0x000000e000000000 0x000000e7ffffffff 0x000000000014220c"

/* The kernel answers what gdmabuf can do, but not about pairs. */
static void tree_put_machine(void)
{
	tree_remove_file("");
	tree_put_device("sys/devices/pci0000:00/0000:00:01.0", "0x8086\n", "0x060400\n",
			"pcieport");
	tree_put_device(BRIDGES, "0x1000\n", "0x060400\n", "pcieport");
	tree_put_device(BRIDGES "/0000:02:00.0", "0x1000\n", "0x060400\n", "pcieport");
	tree_put_device(BRIDGES "/0000:02:01.0", "0x1000\n", "0x060400\n", "pcieport");
	tree_put_device(GPU, "0x10de\n", "0x030200\n", "nvidia");
	tree_put_device(NIC, "0x15b3\n", "0x020000\n", "mlx5_core");
	tree_put_bar(GPU, BAR_32G);
	tree_put_in(GPU, "resource1_resize", "000000000000ffc0\n");
	tree_put("sys/module/nvidia/version", "570.86.10\n");
	tree_put("sys/module/nvidia/taint", "OE\n");
	tree_put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for "
					       "x86_64  570.86.10  Release Build\n");
	tree_put("sys/module/gdmabuf/refcnt", "1\n");
	tree_put("sys/module/gdmabuf_nvidia/refcnt", "0\n");
	tree_put("dev/gdmabuf", "");
	tree_put("dev/nvidiactl", "");
	tree_put("dev/udmabuf", "");
	tree_put("dev/dma_heap/system", "");
	tree_put("proc/sys/kernel/osrelease", "6.12.0\n");
	tree_put("boot/config-6.12.0", "CONFIG_PCI_P2PDMA=y\n");
	tree_put_memlock("unlimited");
	tree_put("proc/self/status", "CapEff:\t0000000000000000\n");
	kernel_caps = (struct gdmabuf_caps){ .out_caps = 0xf, .out_provider = "nvidia" };
	caps_error = 0;
	diag_error = ENODEV;
}

/* The GPU is another vendor's. */
static void tree_put_gpu(const char *vendor, const char *driver)
{
	tree_put_in(GPU, "vendor", vendor);
	tree_put_driver(GPU, driver);
}

/* gdmabuf answers about pairs. */
static void gdmabuf_answer(unsigned int flags, int distance)
{
	diag_error = 0;
	kernel_diag = (struct gdmabuf_diag){ .out_flags = flags, .out_distance = distance };
}

static int diag_of(const char *peer)
{
	FILE *out = fmemopen(output, sizeof(output), "w");
	int status;

	EXPECT(out != NULL);
	status = diag_command(TREE, peer, out);
	fclose(out);
	return status;
}

static int diag_says(const char *sentence)
{
	if (strstr(output, sentence))
		return 1;
	printf("# no \"%s\" in:\n# ", sentence);
	for (const char *c = output; *c; c++)
		printf(*c == '\n' ? "\n# " : "%c", *c);
	printf("\n");
	return 0;
}

static void expect_says(int status, const char *sentence)
{
	EXPECT_EQ(diag_of(NULL), status);
	EXPECT(diag_says(sentence));
}

TEST(nothing, "Exit status 0 and the verdict `can reach` if nothing stops it.")
{
	tree_put_machine();
	expect_says(
		0,
		"verdict: 0000:04:00.0 can reach the memory of 0000:03:00.0: nothing stops it.\n");
	EXPECT(!strstr(output, "  note"));
	EXPECT(!strstr(output, "  stop"));
}

TEST(no_gpu, "Exit status 1 if there is no GPU.")
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

TEST(no_driver, "No NVIDIA driver stops it.")
{
	tree_put_machine();
	tree_remove_file("sys/module/nvidia");
	expect_says(1, "stop  The NVIDIA driver is not loaded.");
	EXPECT(diag_says(
		"cannot reach the memory of 0000:03:00.0: the NVIDIA driver is not loaded.\n"));
}

TEST(closed_driver, "A closed NVIDIA driver, as /proc says, stops it.")
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

TEST(old_driver, "A driver before 535 stops it.")
{
	tree_put_machine();
	tree_put("sys/module/nvidia/version", "530.41.03\n");
	expect_says(1, "stop  The NVIDIA driver 530.41.03 is too old");
}

TEST(other_driver, "A GPU that another driver has stops it.")
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
	caps_error = ENOTTY;
	EXPECT_EQ(diag_of(NULL), 0);
	EXPECT(!strstr(output, "gdmabuf"));
}

TEST(other_vendor_p2pdma, "amdgpu shares no GPU memory without PCI_P2PDMA.")
{
	tree_put_machine();
	tree_put_gpu("0x1002\n", "amdgpu");
	kernel_caps.out_caps &= ~(unsigned int)GDMABUF_CAP_P2PDMA;
	expect_says(1, "memory of 0000:03:00.0: the kernel is built without PCI_P2PDMA.\n");
}

TEST(other_vendor_driver, "Drivers that do not share GPU memory stop it.")
{
	tree_put_machine();
	tree_put_gpu("0x8086\n", "i915");
	expect_says(1, "stop  The GPU's driver is i915.");
}

TEST(small_bar, "A BAR that could be larger is a note, with both sizes.")
{
	tree_put_machine();
	tree_put_bar(GPU, BAR_256M);
	expect_says(0,
		    "note  The BAR is small: devices reach 256 MiB at a time, and all memory needs "
		    "32 GiB.");
}

TEST(small_bar_vram, "A BAR smaller than the memory that the driver states is a note.")
{
	tree_put_machine();
	tree_put_bar(GPU, BAR_256M);
	tree_put_in(GPU, "mem_info_vram_total", "17163091968\n");
	expect_says(0, "devices reach 256 MiB at a time, and all memory needs 16368 MiB.");
}

TEST(small_bar_unknown, "A BAR of 256 MiB is a note if the memory's size is unknown.")
{
	tree_put_machine();
	tree_put_bar(GPU, BAR_256M);
	tree_remove_file(GPU "/resource1_resize");
	expect_says(0, "note  The BAR is 256 MiB, and most GPUs have more memory.");
}

TEST(bar_full, "A BAR as large as it can be is all of the memory.")
{
	tree_put_machine();
	expect_says(0, "ok    The BAR is 32 GiB, which is all of the GPU's memory.");
}

TEST(bar_use, "NVML says how much of the BAR is in use.")
{
	tree_put_machine();
	expect_says(0, "ok    Of the BAR's 32 GiB the driver uses 12 MiB, and 32756 MiB are free.");
}

TEST(bar_use_fails,
     "An error of NVML is the reason why the BAR's use is unknown, which stops nothing.")
{
	tree_put_machine();
	setenv("FAKE_NVML_BAR", "3", 1);
	expect_says(0, "note  The used part of the BAR is unknown: Not Supported.\n");
	unsetenv("FAKE_NVML_BAR");
	setenv("FAKE_NVML_INIT", "9", 1);
	expect_says(0, "note  The used part of the BAR is unknown: Driver Not Loaded.\n");
	unsetenv("FAKE_NVML_INIT");
}

TEST(bar_use_other_gpu, "NVML is asked for that GPU by its address.")
{
	tree_put_machine();
	tree_put_in(NIC, "vendor", "0x10de\n");
	tree_put_in(NIC, "class", "0x030000\n");
	tree_put_bar(NIC, BAR_32G);
	diag_of(NULL);
	EXPECT(diag_says("note  The used part of the BAR is unknown: Not Found.\n"));
}

TEST(bar_use_no_node, "NVML is not asked without the driver's device node.")
{
	tree_put_machine();
	tree_remove_file("dev/nvidiactl");
	expect_says(0, "note  The used part of the BAR is unknown: there is no /dev/nvidiactl");
}

TEST(bar_use_other_vendor, "The BAR's use of a GPU that is not NVIDIA's is not printed.")
{
	tree_put_machine();
	tree_put_gpu("0x1002\n", "amdgpu");
	EXPECT_EQ(diag_of(NULL), 0);
	EXPECT(!strstr(output, "used part"));
	EXPECT(!strstr(output, "Of the BAR's"));
}

TEST(no_bar, "A BAR that got no address stops it.")
{
	tree_put_machine();
	tree_put_bar(GPU, "0x0000000000000000 0x00000007ffffffff 0x000000002014220c");
	expect_says(1, "stop  The GPU has no BAR with an address for its memory.");
}

TEST(iommu, "A translating IOMMU makes it a `may`.")
{
	tree_put_machine();
	tree_put_in(NIC, "iommu_group/type", "DMA-FQ\n");
	expect_says(0, "note  An IOMMU translates the device's DMA (DMA-FQ)");
	EXPECT(diag_says("nothing known stops it, but an IOMMU translates the DMA.\n"));
}

TEST(no_iommu, "A device without an IOMMU group is not translated.")
{
	tree_put_machine();
	tree_remove_file(NIC "/iommu_group");
	expect_says(0, "ok    No IOMMU translates the device's DMA.");
}

TEST(iommu_unmanaged, "A device that a program has by way of VFIO cannot import.")
{
	tree_put_machine();
	tree_put_in(NIC, "iommu_group/type", "unmanaged\n");
	expect_says(1, "stop  The device's IOMMU group is unmanaged");
}

TEST(acs, "ACS redirection on the way makes it a `may`, with the bridge's address.")
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

TEST(acs_above, "ACS above the common bridge is of no matter.")
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

TEST(acs_unknown, "ACS is unknown if only 64 bytes of a bridge can be read.")
{
	char head[64] = "";

	tree_put_machine();
	tree_put_bytes(BRIDGES "/0000:02:01.0/config", head, sizeof(head));
	expect_says(0, "note  Only root can read whether ACS redirects.");
	EXPECT(diag_says("nothing known stops it, but ACS is unknown.\n"));
}

TEST(acs_loop, "A list of capabilities that leads back to its start ends.")
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

TEST(other_root, "Different root ports make it a `may`.")
{
	tree_put_machine();
	tree_put_device("sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0", "0x144d\n",
			"0x010802\n", "nvme");
	EXPECT_EQ(diag_of("0000:05:00.0"), 0);
	EXPECT(diag_says("note  No bridge is common to both: the path leads through the root"));
	EXPECT(diag_says("nothing known stops it, but the path leads through the root complex.\n"));
}

TEST(other_host_bridge, "Different host bridges are named so.")
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

TEST(no_p2pdma, "A kernel without PCI_P2PDMA is a note, NVIDIA's memory needs none.")
{
	tree_put_machine();
	caps_error = ENOTTY;
	tree_put("boot/config-6.12.0", "# CONFIG_PCI_P2PDMA is not set\n");
	expect_says(1, "note  The kernel is built without PCI_P2PDMA");
}

TEST(p2pdma_gdmabuf, "gdmabuf knows PCI_P2PDMA better than the file does.")
{
	tree_put_machine();
	kernel_caps.out_caps &= ~(unsigned int)GDMABUF_CAP_P2PDMA;
	expect_says(0, "note  The kernel is built without PCI_P2PDMA");
}

TEST(config_modules, "The kernel's options may be in /lib/modules.")
{
	tree_put_machine();
	caps_error = ENOTTY;
	tree_remove_file("boot");
	tree_put("lib/modules/6.12.0/config", "CONFIG_PCI_P2PDMA=y\n");
	expect_says(1, "ok    The kernel is built with PCI_P2PDMA.");
}

TEST(no_config, "The options that the kernel was built with can be unknown.")
{
	tree_put_machine();
	caps_error = ENOTTY;
	tree_remove_file("boot");
	expect_says(1, "note  The kernel's configuration is unknown: neither /boot/config-6.12.0");
}

TEST(no_gdmabuf, "gdmabuf that is not loaded stops it.")
{
	tree_put_machine();
	tree_remove_file("sys/module/gdmabuf");
	tree_remove_file("dev/gdmabuf");
	expect_says(1, "stop  gdmabuf is not loaded");
	EXPECT(diag_says("cannot reach the memory of 0000:03:00.0: gdmabuf is not loaded.\n"));
}

TEST(no_provider, "gdmabuf without a provider stops it.")
{
	tree_put_machine();
	kernel_caps.out_caps &= ~(unsigned int)GDMABUF_CAP_GPU;
	expect_says(1, "stop  gdmabuf has no provider of GPU memory.");
}

TEST(gdmabuf_refuses, "/dev/gdmabuf that cannot be used stops it, with the error.")
{
	tree_put_machine();
	caps_error = EACCES;
	expect_says(1,
		    "stop  gdmabuf is loaded, but /dev/gdmabuf cannot be used: Permission denied.");
}

TEST(kernel_distance, "The kernel's distance settles every `may`.")
{
	tree_put_machine();
	tree_put_config(BRIDGES "/0000:02:01.0", 0x1d);
	gdmabuf_answer(GDMABUF_DIAG_DISTANCE, 4);
	expect_says(0, "ok    The kernel's own distance is 4.");
	EXPECT(diag_says("nothing stops it.\n"));
}

TEST(kernel_no_way, "No way that the kernel knows stops it.")
{
	tree_put_machine();
	gdmabuf_answer(GDMABUF_DIAG_DISTANCE, -1);
	expect_says(1, "stop  The kernel knows no working path between the two.");
}

TEST(kernel_acs, "gdmabuf sees ACS where only root could read it.")
{
	tree_put_machine();
	tree_remove_file(BRIDGES "/0000:02:01.0/config");
	gdmabuf_answer(GDMABUF_DIAG_ACS, 0);
	expect_says(0, "but ACS sends the DMA through the root complex.\n");
}

TEST(kernel_iommu, "gdmabuf sees an IOMMU whose group says nothing.")
{
	tree_put_machine();
	tree_remove_file(NIC "/iommu_group");
	gdmabuf_answer(GDMABUF_DIAG_IOMMU, 0);
	expect_says(0, "but an IOMMU translates the DMA.\n");
}

TEST(peer_driver, "A device without a driver stops it.")
{
	tree_put_machine();
	tree_put_driver(NIC, "");
	expect_says(1, "stop  The device has no driver to import a dma-buf.");
}

TEST(sound, "Sound devices and other functions of the GPU are no peers.")
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

TEST(two_gpus, "GPUs are each other's peers.")
{
	tree_put_machine();
	tree_put_in(NIC, "vendor", "0x10de\n");
	tree_put_in(NIC, "class", "0x030000\n");
	tree_put_driver(NIC, "nvidia");
	tree_put_bar(NIC, BAR_32G);
	expect_says(0, "verdict: 0000:04:00.0 can reach the memory of 0000:03:00.0");
	EXPECT(diag_says("verdict: 0000:03:00.0 can reach the memory of 0000:04:00.0"));
}

TEST(named_peer, "A device that is named is judged, whatever it is.")
{
	tree_put_machine();
	tree_put_in(NIC, "class", "0x0c0330\n");
	EXPECT_EQ(diag_of("04:00.0"), 0);
	EXPECT(diag_says("verdict: 0000:04:00.0 can reach the memory of 0000:03:00.0"));
}

TEST(udmabuf, "Missing udmabuf is a note.")
{
	tree_put_machine();
	tree_remove_file("dev/udmabuf");
	expect_says(0, "note  /dev/udmabuf, which makes dma-bufs of memfds, does not exist.");
}

TEST(dma_heap, "A missing dma-heap is a note.")
{
	tree_put_machine();
	tree_remove_file("dev/dma_heap");
	expect_says(0, "note  No dma-heap exists");
}

TEST(memlock, "A small RLIMIT_MEMLOCK is a note, with its size.")
{
	tree_put_machine();
	tree_put_memlock("8388608");
	expect_says(0, "note  RLIMIT_MEMLOCK is too small: 8 MiB of host memory can be pinned.");
}

TEST(memlock_capable, "CAP_IPC_LOCK lifts RLIMIT_MEMLOCK.")
{
	tree_put_machine();
	tree_put_memlock("8388608");
	tree_put("proc/self/status", "CapEff:\t0000000000004000\n");
	EXPECT_EQ(diag_of(NULL), 0);
	EXPECT(!strstr(output, "RLIMIT_MEMLOCK"));
}

TEST(no_address, "Exit status 2 if the peer is no PCI address.")
{
	tree_put_machine();
	EXPECT_EQ(diag_of("eth0"), 2);
	EXPECT_EQ(diag_of("04:00.0x"), 2);
	EXPECT_EQ(diag_of("04:20.0"), 2);
}

TEST(no_such_device, "Exit status 2 if there is no such device.")
{
	tree_put_machine();
	EXPECT_EQ(diag_of("77:00.0"), 2);
}

/* What it prints is then in @output. */
static int diag_run(const char *arguments)
{
	char line[2 * PATH_MAX];
	FILE *pipe;

	if (!getenv("CLIMPORT"))
		test_skip("CLIMPORT does not name the program");
	snprintf(line, sizeof(line), "env -u LD_LIBRARY_PATH '%s' diag %s 2>/dev/null",
		 getenv("CLIMPORT"), arguments);
	pipe = popen(line, "r");
	EXPECT(pipe != NULL);
	output[fread(output, 1, sizeof(output) - 1, pipe)] = '\0';
	return pclose(pipe) >> 8;
}

TEST(usage, "climport diag: exit status 2 for an unknown option, no folder, two addresses.")
{
	tree_put_machine();
	EXPECT_EQ(diag_run("--sys " TREE), 2);
	EXPECT_EQ(diag_run("--sysfs"), 2);
	EXPECT_EQ(diag_run("--sysfs " TREE " 03:00.0 04:00.0"), 2);
}

TEST(program, "climport diag: reads below the folder of --sysfs.")
{
	tree_put_machine();
	EXPECT_EQ(diag_run("--sysfs " TREE " 77:00.0"), 2);
	EXPECT_EQ(diag_run("--sysfs " TREE " 04:00.0"), 1);
	tree_put_gpu("0x1002\n", "amdgpu");
	EXPECT_EQ(diag_run("--sysfs " TREE " 04:00.0"), 0);
}

TEST(program_no_nvml, "climport diag: works without NVML, and says so.")
{
	tree_put_machine();
	EXPECT_EQ(diag_run("--sysfs " TREE), 1);
	EXPECT(diag_says("note  The used part of the BAR is unknown: "));
}

__attribute__((destructor)) static void tree_remove(void)
{
	if (system("rm -rf " TREE))
		perror(TREE);
}
