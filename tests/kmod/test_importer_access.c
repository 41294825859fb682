/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of read-only exports, kernel mappings, and the answers of GDMABUF_DIAG. */
#include "importer_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <libdrm/drm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

TEST(read_only_device,
     "A device that writes cannot map a read-only export (EACCES), and a device that reads can.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct setup s = setup_host(p, GDMABUF_READ_ONLY);
	struct gdmabuf_importer_map map;

	EXPECT_EQ(test_importer_attach(s.importer, s.e.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_FROM_DEVICE),
		  0);
	EXPECT_EQ(test_importer_map(s.importer, &map), -EACCES);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_DETACH, 0), 0);
	EXPECT_EQ(test_importer_attach(s.importer, s.e.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_TO_DEVICE),
		  0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	import_test_end(&s);
}

struct importer_mode {
	const char *name;
	uint32_t mode;
};

static const struct importer_mode importer_modes[] = {
	{ "static", GDMABUF_IMPORTER_STATIC },
	{ "pinned", GDMABUF_IMPORTER_PINNED },
	{ "dynamic", GDMABUF_IMPORTER_DYNAMIC },
};

TEST_EACH(read_only_bidirectional, struct importer_mode, importer_modes,
	  "A device that reads and writes cannot map a read-only export: EACCES.")
{
	struct setup s = setup_host(pages_new(LENGTH, 1), GDMABUF_READ_ONLY);

	EXPECT_EQ(attach_and_map(&s, (struct gdmabuf_importer_attach){ .mode = row->mode }),
		  -EACCES);
	import_test_end(&s);
}

static const struct importer_mode modes_with_operations[] = {
	{ "pinned", GDMABUF_IMPORTER_PINNED },
	{ "dynamic", GDMABUF_IMPORTER_DYNAMIC },
};

/*
 * Before 6.16 the kernel maps in the attach, for both directions, if the importer has operations
 * and the exporter cannot pin, or the reverse.
 */
TEST_EACH(read_only_with_operations, struct importer_mode, modes_with_operations,
	  "An importer with operations that only reads maps a read-only export from Linux 6.16 on; "
	  "before, the importer gets EACCES.")
{
	struct setup s = setup_host(pages_new(LENGTH, 1), GDMABUF_READ_ONLY);
	int major, minor, expected;
	struct utsname name;

	EXPECT_EQ(uname(&name), 0);
	EXPECT_EQ(sscanf(name.release, "%d.%d", &major, &minor), 2);
	expected = major < 6 || (major == 6 && minor < 16) ? -EACCES : 0;
	EXPECT_EQ(attach_and_map(&s,
				 (struct gdmabuf_importer_attach){
					 .mode = row->mode,
					 .direction = GDMABUF_IMPORTER_TO_DEVICE,
				 }),
		  expected);
	import_test_end(&s);
}

/* A read-only export of a file's mapping that permits only reads. */
static struct setup setup_read_only_file(int *file)
{
	unsigned char *p;

	*file = memfd_create("file", MFD_CLOEXEC);
	EXPECT_EQ(ftruncate(*file, LENGTH), 0);
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
	EXPECT(p != MAP_FAILED);
	pattern_fill(p, LENGTH);
	munmap(p, LENGTH);
	p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, *file, 0);
	EXPECT(p != MAP_FAILED);
	return setup_host(p, GDMABUF_READ_ONLY);
}

static void file_is_as_it_was(int file)
{
	static unsigned char got[LENGTH];

	EXPECT_EQ(pread(file, got, LENGTH, 0), LENGTH);
	EXPECT_EQ(pattern_mismatches(got, LENGTH), 0);
	close(file);
}

static unsigned char *import_mmap(const struct setup *s, int prot, int flags)
{
	EXPECT_EQ(test_importer_attach(s->importer, s->e.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_TO_DEVICE),
		  0);
	return mmap(NULL, LENGTH, prot, flags, s->importer, 0);
}

TEST(importer_mmap,
     "An importing driver's mapping for a process shows the memory, and can be written.")
{
	unsigned char *p = pages_new(LENGTH, 1), *view;
	struct setup s = setup_host(p, 0);

	view = import_mmap(&s, PROT_READ | PROT_WRITE, MAP_SHARED);
	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	view[PAGE] = 0x5a;
	EXPECT_EQ(p[PAGE], 0x5a);
	munmap(view, LENGTH);
	import_test_end(&s);
}

TEST(read_only_importer_mmap,
     "An importing driver cannot map a read-only export writable into a process: EACCES.")
{
	int file;
	struct setup s = setup_read_only_file(&file);
	unsigned char *view = import_mmap(&s, PROT_READ | PROT_WRITE, MAP_SHARED);

	if (view != MAP_FAILED)
		view[0] = 0x66;
	file_is_as_it_was(file);
	EXPECT(view == MAP_FAILED);
	EXPECT_EQ(errno, EACCES);
	import_test_end(&s);
}

TEST(read_only_importer_private,
     "An importing driver cannot map a read-only export privately into a process: EINVAL.")
{
	int file;
	struct setup s = setup_read_only_file(&file);

	EXPECT(import_mmap(&s, PROT_READ, MAP_PRIVATE) == MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	file_is_as_it_was(file);
	import_test_end(&s);
}

TEST(read_only_importer_mprotect,
     "An importing driver's mapping of a read-only export cannot be made writable: EACCES.")
{
	int file;
	struct setup s = setup_read_only_file(&file);
	unsigned char *view = import_mmap(&s, PROT_READ, MAP_SHARED);
	int err;

	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	err = mprotect(view, LENGTH, PROT_READ | PROT_WRITE) ? errno : 0;
	if (!err)
		view[0] = 0x66;
	file_is_as_it_was(file);
	EXPECT_EQ(err, EACCES);
	munmap(view, LENGTH);
	import_test_end(&s);
}

static void proc_mem_cannot_write(int file, unsigned char *view)
{
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	EXPECT(view && view != MAP_FAILED);
	EXPECT_EQ(pwrite(mem, "x", 1, (off_t)(uintptr_t)view), -1);
	munmap(view, LENGTH);
	file_is_as_it_was(file);
	close(mem);
}

TEST(read_only_ptrace,
     "A driver's mapping of a read-only export cannot be written by /proc/self/mem.")
{
	int file;
	struct setup s = setup_read_only_file(&file);

	proc_mem_cannot_write(file, import_mmap(&s, PROT_READ, MAP_SHARED));
	import_test_end(&s);
}

TEST(read_only_ptrace_own,
     "The dma-buf's own mapping of a read-only export cannot be written by /proc/self/mem.")
{
	int file;
	struct setup s = setup_read_only_file(&file);

	proc_mem_cannot_write(file, dmabuf_map(s.e.fd, LENGTH, PROT_READ));
	import_test_end(&s);
}

TEST(read_only_moved,
     "A mapping of a read-only export cannot be written after mremap() and remap_file_pages().")
{
	int file;
	struct setup s = setup_read_only_file(&file);
	unsigned char *view = import_mmap(&s, PROT_READ, MAP_SHARED), *moved;

	moved = mremap(view, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, pages_new(LENGTH, 0));
	EXPECT(moved != MAP_FAILED);
	EXPECT_EQ(pattern_mismatches(moved, LENGTH), 0);
	EXPECT_EQ(mprotect(moved, PAGE, PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(errno, EACCES);
	remap_file_pages(moved, PAGE, 0, 1, 0);
	EXPECT_EQ(mprotect(moved, PAGE, PROT_READ | PROT_WRITE), -1);
	file_is_as_it_was(file);
	munmap(moved, LENGTH);
	import_test_end(&s);
}

struct write_direction {
	const char *name;
	uint32_t direction;
};

static const struct write_direction write_directions[] = {
	{ "to_device", GDMABUF_IMPORTER_TO_DEVICE },
	{ "bidirectional", GDMABUF_IMPORTER_BIDIRECTIONAL },
};

static struct setup setup_read_only_reader(void)
{
	struct setup s = setup_host(pages_new(LENGTH, 1), GDMABUF_READ_ONLY);

	EXPECT_EQ(test_importer_attach(s.importer, s.e.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_TO_DEVICE),
		  0);
	return s;
}

TEST_EACH(read_only_cpu_access, struct write_direction, write_directions,
	  "The kernel's begin and end of CPU writes fail with EACCES on a read-only export.")
{
	struct setup s = setup_read_only_reader();

	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_BEGIN_CPU_ACCESS, row->direction),
		  -EACCES);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_END_CPU_ACCESS, row->direction),
		  -EACCES);
	import_test_end(&s);
}

TEST(read_only_cpu_reads, "The kernel's begin and end of CPU reads work on a read-only export.")
{
	struct setup s = setup_read_only_reader();

	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_BEGIN_CPU_ACCESS,
				GDMABUF_IMPORTER_FROM_DEVICE),
		  0);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_END_CPU_ACCESS,
				GDMABUF_IMPORTER_FROM_DEVICE),
		  0);
	import_test_end(&s);
}

/* Opens the first device of a DRM driver. */
static int drm_open(const char *driver)
{
	for (int i = 0; i < 16; i++) {
		char path[32], name[32] = "";
		struct drm_version version = { .name = name, .name_len = sizeof(name) - 1 };
		int fd;

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0 && !ioctl(fd, DRM_IOCTL_VERSION, &version) && !strcmp(name, driver))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	test_skip("no DRM device of %s", driver);
	return -1;
}

static unsigned char *drm_map(int drm, uint32_t handle)
{
	struct drm_mode_map_dumb map = { .handle = handle };

	/*
	 * If the driver does not tell the offset of an imported object, try the offset of the first
	 * object.
	 */
	if (ioctl(drm, DRM_IOCTL_MODE_MAP_DUMB, &map))
		map.offset = 1ULL << 32;
	return mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, drm, (off_t)map.offset);
}

static void drm_cannot_write(const char *driver)
{
	int file, drm = drm_open(driver);
	struct setup s = setup_read_only_file(&file);
	struct drm_prime_handle prime = { .fd = s.e.fd };
	unsigned char *view = MAP_FAILED;

	if (!ioctl(drm, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime))
		view = drm_map(drm, prime.handle);
	else
		printf("# %s does not import it: %s\n", driver, strerror(errno));
	if (view != MAP_FAILED)
		view[0] = 0x66;
	file_is_as_it_was(file);
	EXPECT(view == MAP_FAILED);
	close(drm);
	import_test_end(&s);
}

TEST(read_only_vgem, "A read-only export that vgem imports cannot be written through vgem.")
{
	drm_cannot_write("vgem");
}

TEST(read_only_virtio_gpu,
     "A read-only export that virtio-gpu imports cannot be written through virtio-gpu.")
{
	drm_cannot_write("virtio_gpu");
}

static void kernel_mapping(struct setup *s)
{
	static unsigned char got[LENGTH];

	EXPECT_EQ(import_attach(s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_VMAP, 0), 0);
	EXPECT_EQ(importer_access(s->importer, GDMABUF_IMPORTER_VREAD, 0, got, LENGTH), 0);
	EXPECT_EQ(pattern_mismatches(got, LENGTH), 0);
	memset(got, 0x1f, PAGE);
	EXPECT_EQ(importer_access(s->importer, GDMABUF_IMPORTER_VWRITE, 2 * GPU_PAGE, got, PAGE),
		  0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_VUNMAP, 0), 0);
}

TEST(vmap_gpu, "A driver reads and writes GPU memory through a kernel mapping.")
{
	struct setup s = import_test_begin(0, 0);

	kernel_mapping(&s);
	mockgpu_read(s.gpu, s.va, bytes, LENGTH);
	EXPECT_EQ(bytes[2 * GPU_PAGE], 0x1f);
	import_test_end(&s);
}

TEST(vmap_gpu_scattered,
     "A driver reads and writes scattered GPU memory through a kernel mapping, if the kernel has "
     "vmap_pfn().")
{
	struct setup s = import_test_begin(MOCK_SCATTER, 0);
	int err;

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	err = importer_call(s.importer, GDMABUF_IMPORTER_VMAP, 0);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_DETACH, 0), 0);
	if (err == -EINVAL) {
		import_test_end(&s);
		test_skip("this kernel has no CONFIG_VMAP_PFN");
	}
	kernel_mapping(&s);
	import_test_end(&s);
}

TEST(vmap_host, "A driver reads and writes host memory through a kernel mapping.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct setup s = setup_host(p, 0);

	kernel_mapping(&s);
	EXPECT_EQ(p[2 * GPU_PAGE], 0x1f);
	import_test_end(&s);
}

static void vmap_refused(struct setup *s, uint32_t mode, uint32_t flags)
{
	EXPECT_EQ(import_attach(s, mode, flags), 0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_VMAP, 0), -EINVAL);
	import_test_end(s);
}

TEST(vmap_read_only,
     "A kernel mapping of a read-only export fails with EINVAL, and without a warning.")
{
	struct setup s = setup_host(pages_new(LENGTH, 1), GDMABUF_READ_ONLY);

	vmap_refused(&s, GDMABUF_IMPORTER_STATIC, 0);
}

TEST(vmap_huge, "A kernel mapping of more than 256 MiB fails with EINVAL, and without a warning.")
{
	enum { HUGE = 257 << 20 };
	struct setup s = { .gpu = mockgpu_open(),
			   .ctx = gdm_open(),
			   .importer = test_importer_open() };
	unsigned char *p = pages_new(HUGE, 0);

	EXPECT_EQ(gdm_export_host(s.ctx, p, HUGE, 0, &s.e), 0);
	vmap_refused(&s, GDMABUF_IMPORTER_STATIC, 0);
	munmap(p, HUGE);
}

TEST(importer_keeps,
     "An importer keeps the pages after every descriptor is closed and the owner's memory is "
     "unmapped.")
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct setup s = setup_host(p, 0);
	static unsigned char got[LENGTH];

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_VMAP, 0), 0);
	close(s.e.fd);
	munmap(p, LENGTH);
	EXPECT_EQ(importer_access(s.importer, GDMABUF_IMPORTER_VREAD, 0, got, LENGTH), 0);
	EXPECT_EQ(pattern_mismatches(got, LENGTH), 0);
	s.e.fd = -1;
	import_test_end(&s);
}

static void cpu_access_works(struct setup *s)
{
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(test_importer_map(s->importer, &map), 0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_BEGIN_CPU_ACCESS, 0), 0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_END_CPU_ACCESS, 0), 0);
	import_test_end(s);
}

TEST(cpu_access_gpu, "While a device has GPU memory mapped, begin and end of CPU access work.")
{
	struct setup s = import_test_begin(0, 0);

	cpu_access_works(&s);
}

TEST(cpu_access_host, "While a device has host memory mapped, begin and end of CPU access work.")
{
	struct setup s = setup_host(pages_new(LENGTH, 1), 0);

	cpu_access_works(&s);
}

/*
 * Finds the first PCI device with the ids.  Returns the address in the form of GDMABUF_DIAG, and in
 * @path the device's folder in sysfs.  Without such a device the test is skipped.
 */
static uint32_t pci_address(const char *vendor, const char *device, char *path, size_t size)
{
	unsigned int domain, bus, slot, function;
	char line[128], want[32], *at = NULL;
	FILE *f;

	snprintf(line, sizeof(line), "grep -lx %s /sys/bus/pci/devices/*/device", device);
	snprintf(want, sizeof(want), "%s\n", vendor);
	f = popen(line, "r");
	while (!at && fgets(path, (int)size, f)) {
		char *end = strstr(path, "/device\n");
		FILE *v;

		strcpy(end, "/vendor");
		v = fopen(path, "r");
		if (v && fgets(line, sizeof(line), v) && !strcmp(line, want))
			at = path + strlen("/sys/bus/pci/devices/");
		if (v)
			fclose(v);
		*end = '\0';
	}
	pclose(f);
	if (!at)
		test_skip("no PCI device %s:%s", vendor, device);
	EXPECT_EQ(sscanf(at, "%x:%x:%x.%x", &domain, &bus, &slot, &function), 4);
	return domain << 16 | bus << 8 | slot << 3 | function;
}

static int is_translated(const char *device)
{
	char path[512], type[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/iommu_group/type", device);
	f = fopen(path, "r");
	if (f && !fgets(type, sizeof(type), f))
		type[0] = '\0';
	if (f)
		fclose(f);
	return !strncmp(type, "DMA", 3);
}

TEST(diag_pair,
     "GDMABUF_DIAG reports an IOMMU that translates, and reports no bridge if the devices share "
     "none.")
{
	struct gdmabuf_diag d = { .size = sizeof(d) };
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	int ctx = gdm_open();
	char path[256];

	d.gpu = pci_address("0x1af4", "0x1110", path, sizeof(path));
	d.peer = pci_address("0x1234", "0x11e8", path, sizeof(path));
	EXPECT_EQ(gdm_call(ctx, GDMABUF_CAPS, &caps), 0);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_DIAG, &d), 0);
	EXPECT_EQ(!!(d.out_flags & GDMABUF_DIAG_IOMMU), is_translated(path));
	EXPECT_EQ(!!(d.out_flags & GDMABUF_DIAG_DISTANCE), !!(caps.out_caps & GDMABUF_CAP_P2PDMA));
	EXPECT_EQ(d.out_flags & (GDMABUF_DIAG_SAME_BRIDGE | GDMABUF_DIAG_ACS), 0);
	close(ctx);
}

static int sysfs_write(const char *device, const char *file, const char *word)
{
	char path[512];
	int fd, err;

	snprintf(path, sizeof(path), "%s/%s", device, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	err = fd < 0 || write(fd, word, strlen(word)) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

static int has_driver(const char *device)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/driver", device);
	return !access(path, F_OK);
}

TEST(diag_without_driver,
     "If a device has no driver, GDMABUF_DIAG reports the IOMMU without a look at the domain.")
{
	struct gdmabuf_diag d = { .size = sizeof(d) };
	int ctx = gdm_open();
	char path[256];

	d.gpu = pci_address("0x1af4", "0x1110", path, sizeof(path));
	d.peer = pci_address("0x1234", "0x11e8", path, sizeof(path));
	if (!is_translated(path))
		test_skip("no IOMMU translates for the device");
	if (has_driver(path))
		test_skip("the device has a driver");
	EXPECT_EQ(sysfs_write(path, "iommu_group/type", "identity"), 0);
	EXPECT_EQ(gdm_call(ctx, GDMABUF_DIAG, &d), 0);
	EXPECT(d.out_flags & GDMABUF_DIAG_IOMMU);
	EXPECT_EQ(sysfs_write(path, "iommu_group/type", "DMA"), 0);
	close(ctx);
}
