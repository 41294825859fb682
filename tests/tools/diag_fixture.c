/* SPDX-License-Identifier: Apache-2.0 */
#include "diag_fixture.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/gdmabuf.h>

char output[1 << 16];
unsigned int gpu_page_size; /* of gdmabuf's provider */
int caps_error;		    /* errno, 0 to answer */

int __wrap_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
	(void)fd;
	errno = request == GDMABUF_CAPS ? caps_error : ENOTTY;
	if (errno)
		return -1;
	*(struct gdmabuf_caps *)argument = (struct gdmabuf_caps){
		.out_gpu_page_size = gpu_page_size,
		.out_provider = "nvidia",
	};
	return 0;
}

/* Makes the folders above @name, and returns the path in the tree. */
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

void tree_put_bytes(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(tree_make_path(name), "w");

	EXPECT(file != NULL);
	EXPECT_EQ(fwrite(bytes, 1, size, file), size);
	EXPECT_EQ(fclose(file), 0);
}

void tree_put(const char *name, const char *text)
{
	tree_put_bytes(name, text, strlen(text));
}

void tree_put_in(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	tree_put(path, text);
}

static int tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* In this process: a shell for each of some hundred trees is slow. */
void tree_remove_file(const char *name)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), TREE "/%s", name);
	if (nftw(path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS) && errno != ENOENT)
		EXPECT_EQ(errno, 0);
}

void tree_put_config(const char *dir, int control)
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

void tree_put_driver(const char *dir, const char *driver)
{
	char path[PATH_MAX], target[PATH_MAX];

	snprintf(path, sizeof(path), "%s/driver", dir);
	snprintf(target, sizeof(target), "/sys/bus/pci/drivers/%s", driver);
	tree_remove_file(path);
	if (*driver)
		EXPECT_EQ(symlink(target, tree_make_path(path)), 0);
}

void tree_put_bar(const char *dir, const char *line)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n%s\n"
		 "0x0000000000000000 0x0000000000000000 0x0000000000000000\n",
		 line);
	tree_put_in(dir, "resource", text);
}

void tree_put_device(const char *dir, const char *vendor, const char *class, const char *driver)
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

void tree_put_machine(void)
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
	tree_put("sys/module/nvidia/version", "570.86.10\n");
	tree_put("sys/module/nvidia/taint", "OE\n");
	tree_put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for "
					       "x86_64  570.86.10  Release Build\n");
	tree_put("sys/module/gdmabuf/refcnt", "1\n");
	tree_put("sys/module/gdmabuf_nvidia/refcnt", "0\n");
	tree_put("dev/gdmabuf", "");
	tree_put("proc/sys/kernel/osrelease", "6.12.0\n");
	tree_put("boot/config-6.12.0", "CONFIG_PCI_P2PDMA=y\n");
	gpu_page_size = 65536;
	caps_error = 0;
}

int diag_of(const char *peer)
{
	FILE *out = fmemopen(output, sizeof(output), "w");
	int status;

	EXPECT(out != NULL);
	status = diag_command(TREE, peer, false, out);
	fclose(out);
	return status;
}

int diag_says(const char *sentence)
{
	if (strstr(output, sentence))
		return 1;
	printf("# no \"%s\" in:\n# ", sentence);
	for (const char *c = output; *c; c++)
		printf(*c == '\n' ? "\n# " : "%c", *c);
	printf("\n");
	return 0;
}

void expect_says(int status, const char *sentence)
{
	EXPECT_EQ(diag_of(NULL), status);
	EXPECT(diag_says(sentence));
}

__attribute__((destructor)) static void tree_remove(void)
{
	if (nftw(TREE, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS) && errno != ENOENT)
		perror(TREE);
}
