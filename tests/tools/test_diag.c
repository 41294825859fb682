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
static const char *place(const char *name)
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

static void put_bytes(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(place(name), "w");

	EXPECT(file != NULL);
	EXPECT_EQ(fwrite(bytes, 1, size, file), size);
	EXPECT_EQ(fclose(file), 0);
}

static void put(const char *name, const char *text)
{
	put_bytes(name, text, strlen(text));
}

static void put_in(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	put(path, text);
}

static void take(const char *name)
{
	char command[2 * PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '" TREE "/%s'", name);
	EXPECT_EQ(system(command), 0);
}

/* As root reads it: error reporting, then ACS with these control bits. */
static void put_config(const char *dir, int control)
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
	put_bytes(path, bytes, sizeof(bytes));
}

static void put_driver(const char *dir, const char *driver)
{
	char path[PATH_MAX], target[PATH_MAX];

	snprintf(path, sizeof(path), "%s/driver", dir);
	snprintf(target, sizeof(target), "/sys/bus/pci/drivers/%s", driver);
	take(path);
	if (*driver)
		EXPECT_EQ(symlink(target, place(path)), 0);
}

static void put_bar(const char *dir, const char *line)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n%s\n"
		 "0x0000000000000000 0x0000000000000000 0x0000000000000000\n",
		 line);
	put_in(dir, "resource", text);
}

static void put_device(const char *dir, const char *vendor, const char *class, const char *driver)
{
	char link[PATH_MAX], target[2 * PATH_MAX];

	put_in(dir, "vendor", vendor);
	put_in(dir, "device", "0x1017\n");
	put_in(dir, "class", class);
	put_in(dir, "numa_node", "0\n");
	put_in(dir, "iommu_group/type", "identity\n");
	put_config(dir, NO_ACS);
	put_driver(dir, driver);
	snprintf(link, sizeof(link), "sys/bus/pci/devices/%s", strrchr(dir, '/') + 1);
	snprintf(target, sizeof(target), "../../../../%s", dir);
	EXPECT_EQ(symlink(target, place(link)), 0);
}

static void put_memlock(const char *bytes)
{
	char line[128];

	snprintf(line, sizeof(line), "Max locked memory         %-20s %-20s bytes\n", bytes, bytes);
	put("proc/self/limits", line);
}

#define BAR_256M "0x000000e000000000 0x000000e00fffffff 0x000000000014220c"
#define BAR_32G "0x000000e000000000 0x000000e7ffffffff 0x000000000014220c"

/* The kernel answers what gdmabuf can do, but not about pairs. */
static void make_machine(void)
{
	take("");
	put_device("sys/devices/pci0000:00/0000:00:01.0", "0x8086\n", "0x060400\n", "pcieport");
	put_device(BRIDGES, "0x1000\n", "0x060400\n", "pcieport");
	put_device(BRIDGES "/0000:02:00.0", "0x1000\n", "0x060400\n", "pcieport");
	put_device(BRIDGES "/0000:02:01.0", "0x1000\n", "0x060400\n", "pcieport");
	put_device(GPU, "0x10de\n", "0x030200\n", "nvidia");
	put_device(NIC, "0x15b3\n", "0x020000\n", "mlx5_core");
	put_bar(GPU, BAR_32G);
	put_in(GPU, "resource1_resize", "000000000000ffc0\n");
	put("sys/module/nvidia/version", "570.86.10\n");
	put("sys/module/nvidia/taint", "OE\n");
	put("proc/driver/nvidia/version",
	    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build\n");
	put("sys/module/gdmabuf/refcnt", "1\n");
	put("sys/module/gdmabuf_nvidia/refcnt", "0\n");
	put("dev/gdmabuf", "");
	put("dev/nvidiactl", "");
	put("dev/udmabuf", "");
	put("dev/dma_heap/system", "");
	put("proc/sys/kernel/osrelease", "6.12.0\n");
	put("boot/config-6.12.0", "CONFIG_PCI_P2PDMA=y\n");
	put_memlock("unlimited");
	put("proc/self/status", "CapEff:\t0000000000000000\n");
	kernel_caps = (struct gdmabuf_caps){ .out_caps = 0xf, .out_provider = "nvidia" };
	caps_error = 0;
	diag_error = ENODEV;
}

/* The GPU is another vendor's. */
static void put_gpu(const char *vendor, const char *driver)
{
	put_in(GPU, "vendor", vendor);
	put_driver(GPU, driver);
}

/* gdmabuf answers about pairs. */
static void answer(unsigned int flags, int distance)
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

static int says(const char *sentence)
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
	EXPECT(says(sentence));
}

TEST(nothing, "Exit status 0 and the verdict `can reach` if nothing stops it.")
{
	make_machine();
	expect_says(
		0,
		"verdict: 0000:04:00.0 can reach the memory of 0000:03:00.0: nothing stops it.\n");
	EXPECT(!strstr(output, "  note"));
	EXPECT(!strstr(output, "  stop"));
}

TEST(no_gpu, "Exit status 1 if there is no GPU.")
{
	make_machine();
	take("sys/bus/pci/devices/0000:03:00.0");
	expect_says(1, "verdict: there is no GPU:");
}

TEST(no_pci, "A machine without PCI has no GPU.")
{
	make_machine();
	take("sys");
	expect_says(1, "verdict: there is no GPU:");
}

TEST(console, "A display without prefetchable memory is no GPU.")
{
	make_machine();
	put_in(GPU, "vendor", "0x1a03\n");
	put_bar(GPU, "0x00000000f5000000 0x00000000f5ffffff 0x0000000000040200");
	expect_says(1, "verdict: there is no GPU:");
}

TEST(no_driver, "No NVIDIA driver stops it.")
{
	make_machine();
	take("sys/module/nvidia");
	expect_says(1, "stop  The NVIDIA driver is not loaded.");
	EXPECT(says("cannot reach the memory of 0000:03:00.0: the NVIDIA driver is not loaded.\n"));
}

TEST(closed_driver, "A closed NVIDIA driver, as /proc says, stops it.")
{
	make_machine();
	put("proc/driver/nvidia/version",
	    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86\n");
	expect_says(1, "stop  The NVIDIA driver 570.86.10 is the closed one");
	EXPECT(says("cannot reach the memory of 0000:03:00.0: the NVIDIA driver is closed.\n"));
}

TEST(closed_taint, "A driver that taints as proprietary is closed.")
{
	make_machine();
	take("proc/driver");
	put("sys/module/nvidia/taint", "POE\n");
	expect_says(1, "stop  The NVIDIA driver 570.86.10 is the closed one");
}

TEST(open_taint, "A driver that does not taint as proprietary is open.")
{
	make_machine();
	take("proc/driver");
	expect_says(0, "ok    The NVIDIA driver 570.86.10 is the open one, and new enough.");
}

TEST(old_driver, "A driver before 535 stops it.")
{
	make_machine();
	put("sys/module/nvidia/version", "530.41.03\n");
	expect_says(1, "stop  The NVIDIA driver 530.41.03 is too old");
}

TEST(other_driver, "A GPU that another driver has stops it.")
{
	make_machine();
	put_driver(GPU, "vfio-pci");
	expect_says(1, "stop  The GPU's driver is vfio-pci. Bind it to nvidia.");
}

TEST(other_vendor, "Neither gdmabuf nor NVIDIA's driver is asked for if the GPU is AMD's.")
{
	make_machine();
	put_gpu("0x1002\n", "amdgpu");
	take("sys/module");
	caps_error = ENOTTY;
	EXPECT_EQ(diag_of(NULL), 0);
	EXPECT(!strstr(output, "gdmabuf"));
}

TEST(other_vendor_p2pdma, "amdgpu shares no GPU memory without PCI_P2PDMA.")
{
	make_machine();
	put_gpu("0x1002\n", "amdgpu");
	kernel_caps.out_caps &= ~(unsigned int)GDMABUF_CAP_P2PDMA;
	expect_says(1, "memory of 0000:03:00.0: the kernel is built without PCI_P2PDMA.\n");
}

TEST(other_vendor_driver, "Drivers that do not share GPU memory stop it.")
{
	make_machine();
	put_gpu("0x8086\n", "i915");
	expect_says(1, "stop  The GPU's driver is i915:");
}

TEST(small_bar, "A BAR that could be larger is a note, with both sizes.")
{
	make_machine();
	put_bar(GPU, BAR_256M);
	expect_says(0,
		    "note  The BAR is small: devices reach 256 MiB at a time, and it would need 32 "
		    "GiB.");
}

TEST(small_bar_vram, "A BAR smaller than the memory that the driver states is a note.")
{
	make_machine();
	put_bar(GPU, BAR_256M);
	put_in(GPU, "mem_info_vram_total", "17163091968\n");
	expect_says(0, "devices reach 256 MiB at a time, and it would need 16368 MiB.");
}

TEST(small_bar_unknown, "A BAR of 256 MiB is a note if the memory's size is unknown.")
{
	make_machine();
	put_bar(GPU, BAR_256M);
	take(GPU "/resource1_resize");
	expect_says(0, "note  The BAR is 256 MiB, and most GPUs have more memory.");
}

TEST(bar_full, "A BAR as large as it can be is all of the memory.")
{
	make_machine();
	expect_says(0, "ok    The BAR is 32 GiB, which is all of the GPU's memory.");
}

TEST(bar_use, "NVML says how much of the BAR is in use.")
{
	make_machine();
	expect_says(0, "ok    Of the BAR's 32 GiB the driver uses 12 MiB, and 32756 MiB are free.");
}

TEST(bar_use_fails, "What NVML says instead is why the BAR's use is unknown, which stops nothing.")
{
	make_machine();
	setenv("FAKE_NVML_BAR", "3", 1);
	expect_says(0, "note  How much of the BAR is in use is unknown: Not Supported.\n");
	unsetenv("FAKE_NVML_BAR");
	setenv("FAKE_NVML_INIT", "9", 1);
	expect_says(0, "note  How much of the BAR is in use is unknown: Driver Not Loaded.\n");
	unsetenv("FAKE_NVML_INIT");
}

TEST(bar_use_other_gpu, "NVML is asked for that GPU by its address.")
{
	make_machine();
	put_in(NIC, "vendor", "0x10de\n");
	put_in(NIC, "class", "0x030000\n");
	put_bar(NIC, BAR_32G);
	diag_of(NULL);
	EXPECT(says("note  How much of the BAR is in use is unknown: Not Found.\n"));
}

TEST(bar_use_no_node, "NVML is not asked without the driver's device node.")
{
	make_machine();
	take("dev/nvidiactl");
	expect_says(0,
		    "note  How much of the BAR is in use is unknown: there is no /dev/nvidiactl");
}

TEST(bar_use_other_vendor, "Nothing is said of the BAR's use of a GPU that is not NVIDIA's.")
{
	make_machine();
	put_gpu("0x1002\n", "amdgpu");
	EXPECT_EQ(diag_of(NULL), 0);
	EXPECT(!strstr(output, "in use"));
	EXPECT(!strstr(output, "Of the BAR's"));
}

TEST(no_bar, "A BAR that got no address stops it.")
{
	make_machine();
	put_bar(GPU, "0x0000000000000000 0x00000007ffffffff 0x000000002014220c");
	expect_says(1, "stop  The GPU has no BAR with an address for its memory.");
}

TEST(iommu, "A translating IOMMU makes it a `may`.")
{
	make_machine();
	put_in(NIC, "iommu_group/type", "DMA-FQ\n");
	expect_says(0, "note  An IOMMU translates the device's DMA (DMA-FQ)");
	EXPECT(says("nothing known stops it, but an IOMMU translates it.\n"));
}

TEST(no_iommu, "A device without an IOMMU group is not translated.")
{
	make_machine();
	take(NIC "/iommu_group");
	expect_says(0, "ok    No IOMMU translates the device's DMA.");
}

TEST(iommu_unmanaged, "A device that a program has by way of VFIO cannot import.")
{
	make_machine();
	put_in(NIC, "iommu_group/type", "unmanaged\n");
	expect_says(1, "stop  The device's IOMMU group is unmanaged");
}

TEST(acs, "ACS redirection on the way makes it a `may`, with the bridge's address.")
{
	make_machine();
	put_config(BRIDGES "/0000:02:01.0", 0x1d);
	expect_says(0, "up to the root complex, in: 0000:02:01.0.");
	EXPECT(says("nothing known stops it, but ACS sends it through the root complex.\n"));
}

TEST(acs_both, "Every bridge that redirects is named once.")
{
	make_machine();
	put_config(BRIDGES, 0x04);
	put_config(BRIDGES "/0000:02:00.0", 0x08);
	put_config(BRIDGES "/0000:02:01.0", 0x20);
	expect_says(0, "in: 0000:02:00.0; 0000:01:00.0; 0000:02:01.0.");
}

TEST(acs_above, "ACS above the common bridge is of no matter.")
{
	make_machine();
	put_config("sys/devices/pci0000:00/0000:00:01.0", 0x1d);
	expect_says(0, "ok    No bridge between them redirects (ACS).");
}

TEST(acs_other_bits, "Source validation and upstream forwarding redirect nothing by themselves.")
{
	make_machine();
	put_config(BRIDGES "/0000:02:01.0", 0x11);
	expect_says(0, "ok    No bridge between them redirects (ACS).");
}

TEST(acs_unknown, "ACS is unknown if only 64 bytes of a bridge can be read.")
{
	char head[64] = "";

	make_machine();
	put_bytes(BRIDGES "/0000:02:01.0/config", head, sizeof(head));
	expect_says(0, "note  Only root can read whether ACS redirects.");
	EXPECT(says("nothing known stops it, but ACS is unknown.\n"));
}

TEST(acs_loop, "A list of capabilities that leads back to its start ends.")
{
	unsigned char bytes[4096] = { [0x100] = 0x01, [0x103] = 0x10 };

	make_machine();
	put_bytes(BRIDGES "/0000:02:01.0/config", bytes, sizeof(bytes));
	EXPECT_EQ(diag_of(NULL), 0);
}

TEST(same_switch, "The deepest common bridge is named.")
{
	make_machine();
	expect_says(0, "ok    Both are below the bridge 0000:01:00.0.");
}

TEST(other_root, "Different root ports make it a `may`.")
{
	make_machine();
	put_device("sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0", "0x144d\n", "0x010802\n",
		   "nvme");
	EXPECT_EQ(diag_of("0000:05:00.0"), 0);
	EXPECT(says("note  No bridge is common to them: the way leads through the root"));
	EXPECT(says("nothing known stops it, but the way leads through the root complex.\n"));
}

TEST(other_host_bridge, "Different host bridges are named so.")
{
	make_machine();
	put_device("sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0", "0x144d\n", "0x010802\n",
		   "nvme");
	EXPECT_EQ(diag_of("81:00.0"), 0);
	EXPECT(says("note  No bridge is common to them, nor the host bridge:"));
}

TEST(numa, "Different NUMA nodes are a note.")
{
	make_machine();
	put_in(NIC, "numa_node", "1\n");
	expect_says(0, "note  They are on different NUMA nodes, 0 and 1");
}

TEST(no_p2pdma, "A kernel without PCI_P2PDMA is a note, NVIDIA's memory needs none.")
{
	make_machine();
	caps_error = ENOTTY;
	put("boot/config-6.12.0", "# CONFIG_PCI_P2PDMA is not set\n");
	expect_says(1, "note  The kernel is built without PCI_P2PDMA");
}

TEST(p2pdma_gdmabuf, "gdmabuf knows PCI_P2PDMA better than the file does.")
{
	make_machine();
	kernel_caps.out_caps &= ~(unsigned int)GDMABUF_CAP_P2PDMA;
	expect_says(0, "note  The kernel is built without PCI_P2PDMA");
}

TEST(config_modules, "The kernel's options may be in /lib/modules.")
{
	make_machine();
	caps_error = ENOTTY;
	take("boot");
	put("lib/modules/6.12.0/config", "CONFIG_PCI_P2PDMA=y\n");
	expect_says(1, "ok    The kernel is built with PCI_P2PDMA.");
}

TEST(no_config, "What the kernel was built with can be unknown.")
{
	make_machine();
	caps_error = ENOTTY;
	take("boot");
	expect_says(1,
		    "note  What the kernel was built with is unknown: neither /boot/config-6.12.0");
}

TEST(no_gdmabuf, "gdmabuf that is not loaded stops it.")
{
	make_machine();
	take("sys/module/gdmabuf");
	take("dev/gdmabuf");
	expect_says(1, "stop  gdmabuf is not loaded");
	EXPECT(says("cannot reach the memory of 0000:03:00.0: gdmabuf is not loaded.\n"));
}

TEST(no_provider, "gdmabuf without a provider stops it.")
{
	make_machine();
	kernel_caps.out_caps &= ~(unsigned int)GDMABUF_CAP_GPU;
	expect_says(1, "stop  gdmabuf has no provider of GPU memory.");
}

TEST(gdmabuf_refuses, "/dev/gdmabuf that cannot be used stops it, with the error.")
{
	make_machine();
	caps_error = EACCES;
	expect_says(1,
		    "stop  gdmabuf is loaded, but /dev/gdmabuf cannot be used: Permission denied.");
}

TEST(kernel_distance, "The kernel's distance settles every `may`.")
{
	make_machine();
	put_config(BRIDGES "/0000:02:01.0", 0x1d);
	answer(GDMABUF_DIAG_DISTANCE, 4);
	expect_says(0, "ok    The kernel's own distance is 4.");
	EXPECT(says("nothing stops it.\n"));
}

TEST(kernel_no_way, "No way that the kernel knows stops it.")
{
	make_machine();
	answer(GDMABUF_DIAG_DISTANCE, -1);
	expect_says(1, "stop  The kernel knows no way between them that works.");
}

TEST(kernel_acs, "gdmabuf sees ACS where only root could read it.")
{
	make_machine();
	take(BRIDGES "/0000:02:01.0/config");
	answer(GDMABUF_DIAG_ACS, 0);
	expect_says(0, "but ACS sends it through the root complex.\n");
}

TEST(kernel_iommu, "gdmabuf sees an IOMMU whose group says nothing.")
{
	make_machine();
	take(NIC "/iommu_group");
	answer(GDMABUF_DIAG_IOMMU, 0);
	expect_says(0, "but an IOMMU translates it.\n");
}

TEST(peer_driver, "A device without a driver stops it.")
{
	make_machine();
	put_driver(NIC, "");
	expect_says(1, "stop  The device has no driver to import a dma-buf.");
}

TEST(sound, "Neither sound nor another function of the GPU is a peer.")
{
	make_machine();
	put_device(BRIDGES "/0000:02:00.0/0000:03:00.1", "0x10de\n", "0x048000\n", "x");
	put_in(NIC, "class", "0x040300\n");
	expect_says(0, "verdict: no other device is here that could reach 0000:03:00.0.\n");
}

TEST(capture, "A capture card is a peer.")
{
	make_machine();
	put_in(NIC, "class", "0x040000\n");
	expect_says(0, "GPU 0000:03:00.0 and multimedia 0000:04:00.0 (15b3:1017)\n");
}

TEST(two_gpus, "GPUs are each other's peers.")
{
	make_machine();
	put_in(NIC, "vendor", "0x10de\n");
	put_in(NIC, "class", "0x030000\n");
	put_driver(NIC, "nvidia");
	put_bar(NIC, BAR_32G);
	expect_says(0, "verdict: 0000:04:00.0 can reach the memory of 0000:03:00.0");
	EXPECT(says("verdict: 0000:03:00.0 can reach the memory of 0000:04:00.0"));
}

TEST(named_peer, "A device that is named is judged, whatever it is.")
{
	make_machine();
	put_in(NIC, "class", "0x0c0330\n");
	EXPECT_EQ(diag_of("04:00.0"), 0);
	EXPECT(says("verdict: 0000:04:00.0 can reach the memory of 0000:03:00.0"));
}

TEST(udmabuf, "Missing udmabuf is a note.")
{
	make_machine();
	take("dev/udmabuf");
	expect_says(0, "note  udmabuf is not there");
}

TEST(dma_heap, "A missing dma-heap is a note.")
{
	make_machine();
	take("dev/dma_heap");
	expect_says(0, "note  No dma-heap is there");
}

TEST(memlock, "A small RLIMIT_MEMLOCK is a note, with its size.")
{
	make_machine();
	put_memlock("8388608");
	expect_says(0, "note  RLIMIT_MEMLOCK is too small: 8 MiB of host memory can be pinned.");
}

TEST(memlock_capable, "CAP_IPC_LOCK lifts RLIMIT_MEMLOCK.")
{
	make_machine();
	put_memlock("8388608");
	put("proc/self/status", "CapEff:\t0000000000004000\n");
	EXPECT_EQ(diag_of(NULL), 0);
	EXPECT(!strstr(output, "RLIMIT_MEMLOCK"));
}

TEST(no_address, "Exit status 2 if the peer is no PCI address.")
{
	make_machine();
	EXPECT_EQ(diag_of("eth0"), 2);
	EXPECT_EQ(diag_of("04:00.0x"), 2);
	EXPECT_EQ(diag_of("04:20.0"), 2);
}

TEST(no_such_device, "Exit status 2 if there is no such device.")
{
	make_machine();
	EXPECT_EQ(diag_of("77:00.0"), 2);
}

/* What it prints is then in @output. */
static int command(const char *arguments)
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
	make_machine();
	EXPECT_EQ(command("--sys " TREE), 2);
	EXPECT_EQ(command("--sysfs"), 2);
	EXPECT_EQ(command("--sysfs " TREE " 03:00.0 04:00.0"), 2);
}

TEST(program, "climport diag: reads below the folder of --sysfs.")
{
	make_machine();
	EXPECT_EQ(command("--sysfs " TREE " 77:00.0"), 2);
	EXPECT_EQ(command("--sysfs " TREE " 04:00.0"), 1);
	put_gpu("0x1002\n", "amdgpu");
	EXPECT_EQ(command("--sysfs " TREE " 04:00.0"), 0);
}

TEST(program_no_nvml, "climport diag: works without NVML, and says so.")
{
	make_machine();
	EXPECT_EQ(command("--sysfs " TREE), 1);
	EXPECT(says("note  How much of the BAR is in use is unknown: "));
}

__attribute__((destructor)) static void clean(void)
{
	if (system("rm -rf " TREE))
		perror(TREE);
}
