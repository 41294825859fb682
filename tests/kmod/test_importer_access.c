/* SPDX-License-Identifier: Apache-2.0 */
/* Importers of read-only exports, and kernel mappings. */
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

	EXPECT_EQ(test_importer_attach(s.importer, s.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_FROM_DEVICE),
		  0);
	EXPECT_EQ(test_importer_map(s.importer, &map), -EACCES);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_DETACH, 0), 0);
	EXPECT_EQ(test_importer_attach(s.importer, s.fd, GDMABUF_IMPORTER_STATIC, 0,
				       GDMABUF_IMPORTER_TO_DEVICE),
		  0);
	EXPECT_EQ(test_importer_map(s.importer, &map), 0);
	import_test_end(&s);
}

struct importer_kind {
	const char *name;
	uint32_t mode;
};

static const struct importer_kind importer_kinds[] = {
	{ "static", GDMABUF_IMPORTER_STATIC },
	{ "pinned", GDMABUF_IMPORTER_PINNED },
	{ "dynamic", GDMABUF_IMPORTER_DYNAMIC },
};

TEST_EACH(read_only_bidirectional, struct importer_kind, importer_kinds,
	  "A device that reads and writes cannot map a read-only export: EACCES.")
{
	struct setup s = setup_host(pages_new(LENGTH, 1), GDMABUF_READ_ONLY);

	EXPECT_EQ(attach_and_map(&s, (struct gdmabuf_importer_attach){ .mode = row->mode }),
		  -EACCES);
	import_test_end(&s);
}

static const struct importer_kind kinds_with_operations[] = {
	{ "pinned", GDMABUF_IMPORTER_PINNED },
	{ "dynamic", GDMABUF_IMPORTER_DYNAMIC },
};

/*
 * Before 6.16 the kernel maps in the attach, for both directions, if the importer has operations
 * and the exporter cannot pin, or the reverse.
 */
TEST_EACH(read_only_with_operations, struct importer_kind, kinds_with_operations,
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
	EXPECT_EQ(test_importer_attach(s->importer, s->fd, GDMABUF_IMPORTER_STATIC, 0,
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

	proc_mem_cannot_write(file, dmabuf_map(s.fd, LENGTH, PROT_READ));
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

	EXPECT_EQ(test_importer_attach(s.importer, s.fd, GDMABUF_IMPORTER_STATIC, 0,
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

static unsigned char *drm_map(int drm, uint32_t handle, int prot, int flags)
{
	struct drm_mode_map_dumb map = { .handle = handle };
	void *view;

	/*
	 * If the driver does not tell the offset of an imported object, try the offset of the first
	 * object.
	 */
	if (ioctl(drm, DRM_IOCTL_MODE_MAP_DUMB, &map))
		map.offset = 1ULL << 32;
	view = mmap(NULL, LENGTH, prot, flags, drm, (off_t)map.offset);
	return view == MAP_FAILED ? NULL : view;
}

/* Tries to write through the driver's mappings, and through a dma-buf that the driver makes. */
static int drm_can_write(int drm, uint32_t handle)
{
	struct drm_prime_handle again = { .handle = handle, .flags = DRM_CLOEXEC | DRM_RDWR };
	unsigned char *shared = drm_map(drm, handle, PROT_READ | PROT_WRITE, MAP_SHARED);
	unsigned char *copied = drm_map(drm, handle, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	unsigned char *readable = drm_map(drm, handle, PROT_READ, MAP_SHARED), *made = NULL;
	int can_protect = readable && !mprotect(readable, LENGTH, PROT_READ | PROT_WRITE);

	if (!ioctl(drm, DRM_IOCTL_PRIME_HANDLE_TO_FD, &again))
		made = dmabuf_map(again.fd, LENGTH, PROT_READ | PROT_WRITE);
	if (shared)
		shared[0] = 0x66;
	if (can_protect)
		readable[0] = 0x66;
	if (made)
		made[0] = 0x66;
	return shared || copied || can_protect || made;
}

static void drm_cannot_write(const char *driver)
{
	int file, drm = drm_open(driver), can_write = 0;
	struct setup s = setup_read_only_file(&file);
	struct drm_prime_handle prime = { .fd = s.fd };

	if (!ioctl(drm, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime))
		can_write = drm_can_write(drm, prime.handle);
	else
		printf("# %s does not import it: %s\n", driver, strerror(errno));
	file_is_as_it_was(file);
	EXPECT(!can_write);
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
	struct setup s = import_test_begin(0);

	kernel_mapping(&s);
	mockgpu_read(s.gpu, s.va, bytes, LENGTH);
	EXPECT_EQ(bytes[2 * GPU_PAGE], 0x1f);
	import_test_end(&s);
}

TEST(vmap_gpu_scattered,
     "A driver reads and writes scattered GPU memory through a kernel mapping, if the kernel has "
     "vmap_pfn().")
{
	struct setup s = import_test_begin(MOCK_SCATTER);
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

	EXPECT_EQ(gdm_export_host(s.ctx, p, HUGE, 0, &s.fd), 0);
	vmap_refused(&s, GDMABUF_IMPORTER_STATIC, 0);
	munmap(p, HUGE);
}

TEST(importer_keeps,
     "An importer keeps the pages after every descriptor is closed and the process's memory is "
     "unmapped, until it detaches.")
{
	long long before = gdm_read_total("host-bytes");
	unsigned char *p = pages_new(LENGTH, 1);
	struct setup s = setup_host(p, 0);
	static unsigned char got[LENGTH];

	EXPECT_EQ(import_attach(&s, GDMABUF_IMPORTER_STATIC, 0), 0);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_VMAP, 0), 0);
	close(s.fd);
	munmap(p, LENGTH);
	EXPECT_EQ(importer_access(s.importer, GDMABUF_IMPORTER_VREAD, 0, got, LENGTH), 0);
	EXPECT_EQ(pattern_mismatches(got, LENGTH), 0);
	EXPECT_EQ(gdm_read_total("host-bytes"), before + LENGTH);
	EXPECT_EQ(importer_call(s.importer, GDMABUF_IMPORTER_DETACH, 0), 0);
	EXPECT_EQ(gdm_read_total("host-bytes"), before);
	s.fd = -1;
	import_test_end(&s);
}

static void cpu_access_works(struct setup *s)
{
	struct gdmabuf_importer_map map;

	EXPECT_EQ(import_attach(s, GDMABUF_IMPORTER_DYNAMIC, GDMABUF_IMPORTER_PEER2PEER), 0);
	EXPECT_EQ(test_importer_map(s->importer, &map), 0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_BEGIN_CPU_ACCESS, 0), 0);
	EXPECT_EQ(importer_call(s->importer, GDMABUF_IMPORTER_END_CPU_ACCESS, 0), 0);
	import_test_end(s);
}

TEST(cpu_access_gpu, "While a device has GPU memory mapped, begin and end of CPU access work.")
{
	struct setup s = import_test_begin(0);

	cpu_access_works(&s);
}

TEST(cpu_access_host, "While a device has host memory mapped, begin and end of CPU access work.")
{
	struct setup s = setup_host(pages_new(LENGTH, 1), 0);

	cpu_access_works(&s);
}
