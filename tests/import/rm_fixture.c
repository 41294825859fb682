/* SPDX-License-Identifier: Apache-2.0 */
#include "rm_fixture.h"

const unsigned char rm_uuid[FAKE_RM_GPUS][RM_UUID_SIZE] = { { 1 }, { 2 }, { 3 }, { 4 } };

static struct {
	char *pages;
	size_t size;
} rm_mapped[64];

void rm_close_all(int node)
{
	int fd;

	while ((fd = fake_rm_descriptor(node)) >= 0)
		close(fd);
}

void rm_forget(void)
{
	char *p = rm_pages(PAGE);

	for (int node = 0; node <= FAKE_RM_GPUS; node++)
		rm_close_all(node);
	fake_rm.is_present = false;
	EXPECT_EQ(rm_try(p, PAGE), -EOPNOTSUPP);
	fake_rm.is_present = true;
	rm_expect_kept(0, 0);
}

void rm_begin(void)
{
	rm_forget();
	fake_rm_reset(2);
}

void rm_end(void)
{
	struct fake_rm_held held = fake_rm_held();

	rm_expect_kept(held.clients, held.devices);
	EXPECT_EQ(fake_rm.misuses, 0);
	EXPECT_EQ(fake_rm.inherited, 0);
	for (size_t i = 0; i < sizeof(rm_mapped) / sizeof(*rm_mapped); i++) {
		if (rm_mapped[i].size)
			munmap(rm_mapped[i].pages, rm_mapped[i].size);
		rm_mapped[i].size = 0;
	}
}

char *rm_pages(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i = 0;

	EXPECT(p != MAP_FAILED);
	while (rm_mapped[i].size)
		i++;
	rm_mapped[i].pages = p;
	rm_mapped[i].size = size;
	return p;
}

int rm_try(void *memory, size_t size)
{
	int fd = -1, ret = rm_import_host(rm_uuid[0], memory, size, &fd);

	EXPECT_EQ(ret && fd >= 0, 0);
	return ret ? ret : fd;
}

int rm_try_dmabuf(void)
{
	int dmabuf = memfd_create("fake-dmabuf-frame", MFD_CLOEXEC), fd, ret;

	fake_rm.exporter = "udmabuf";
	EXPECT_EQ(ftruncate(dmabuf, (off_t)SIZE), 0);
	ret = rm_import_dmabuf(rm_uuid[0], dmabuf, SIZE, &fd);
	close(dmabuf);
	return ret ? ret : fd;
}

void rm_import_works(int gpu)
{
	char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fake_opaque opaque;
	int fd, ret;

	EXPECT(p != MAP_FAILED);
	ret = rm_import_host(rm_uuid[gpu], p, SIZE, &fd);
	if (ret)
		printf("# %s\n", log_last());
	EXPECT_EQ(ret, 0);
	EXPECT(fake_opaque_read(fd, &opaque));
	EXPECT(opaque.memory == p);
	EXPECT(!memcmp(opaque.uuid, rm_uuid[gpu], sizeof(opaque.uuid)));
	close(fd);
	munmap(p, SIZE);
}

/* A client is a file, a device two: its node and its anchor, whose page is pinned. */
void rm_expect_kept(int clients, int devices)
{
	struct fake_rm_held held = fake_rm_held();

	EXPECT_EQ(held.clients, clients);
	EXPECT_EQ(held.devices, devices);
	EXPECT_EQ(held.objects, 0);
	EXPECT_EQ(held.memories, devices);
	EXPECT_EQ(held.files, clients + 2 * devices);
}

void rm_fail(const char *name, unsigned int nth, int error, uint32_t status)
{
	fake_rm.fail_name = name;
	fake_rm.fail_call = nth;
	fake_rm.fail_times = 1;
	fake_rm.fail_errno = error;
	fake_rm.fail_status = status;
	fake_rm.matched = 0;
}
