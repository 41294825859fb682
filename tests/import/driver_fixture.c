/* SPDX-License-Identifier: Apache-2.0 */
#include "driver_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_rm.h"
#include "harness.h"
#include "import/opaque_fd/opaque_cache.h"
#include "opaque.h"
#include "process.h"
#include "util/descriptor.h"
#include "util/log.h"

struct driver_buffer {
	uint64_t kept; /* 0: none */
	int device, fd;
};

static pthread_mutex_t driver_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct driver_buffer driver_buffers[256];

atomic_uint driver_forgotten;
_Atomic uint64_t driver_last_forgotten;

#define DRIVER_BUFFERS (sizeof(driver_buffers) / sizeof(*driver_buffers))

/* Closes the buffers of a name; 0: of all names. */
static void driver_drop(uint64_t kept)
{
	pthread_mutex_lock(&driver_mutex);
	for (size_t i = 0; i < DRIVER_BUFFERS; i++) {
		struct driver_buffer *b = &driver_buffers[i];

		if (!b->kept || (kept && b->kept != kept))
			continue;
		close(b->fd);
		b->kept = 0;
	}
	pthread_mutex_unlock(&driver_mutex);
}

void driver_forget(uint64_t kept)
{
	driver_drop(kept);
	atomic_store(&driver_last_forgotten, kept);
	driver_forgotten++;
}

void driver_drop_buffers(void)
{
	driver_drop(0);
}

void driver_in_child(void)
{
	for (size_t i = 0; i < DRIVER_BUFFERS; i++)
		driver_buffers[i].kept = 0;
}

/* The buffer's place; a free place for 0. */
static struct driver_buffer *driver_place(uint64_t kept, int device)
{
	for (size_t i = 0; i < DRIVER_BUFFERS; i++)
		if (driver_buffers[i].kept == kept && (!kept || driver_buffers[i].device == device))
			return &driver_buffers[i];
	return NULL;
}

/* A reference to the buffer, or -1. */
static int driver_find(uint64_t kept, int device)
{
	struct driver_buffer *b;
	int fd;

	pthread_mutex_lock(&driver_mutex);
	b = driver_place(kept, device);
	fd = b ? fcntl(b->fd, F_DUPFD_CLOEXEC, 3) : -1;
	pthread_mutex_unlock(&driver_mutex);
	return fd;
}

static void driver_keep(uint64_t kept, int device, int fd)
{
	int own = descriptor_duplicate(fd);

	EXPECT(own >= 0);
	pthread_mutex_lock(&driver_mutex);
	if (driver_place(kept, device)) {
		close(own); /* another thread was faster */
	} else {
		EXPECT(driver_place(0, 0));
		*driver_place(0, 0) = (struct driver_buffer){ kept, device, own };
	}
	pthread_mutex_unlock(&driver_mutex);
}

static int driver_open(struct driver_import *import, int device)
{
	int ret;

	import->fd = driver_find(import->out.kept, device);
	if (import->fd >= 0)
		return 0;
	ret = import_opaque_open(import->opaque, fake_rm.gpu[device].uuid, true, &import->out);
	if (ret)
		return ret;
	if (import->out.kept)
		driver_keep(import->out.kept, device, import->out.fd);
	import->fd = import->out.fd;
	return 0;
}

static void driver_check_import(const struct driver_import *import, uintptr_t address)
{
	struct fake_opaque seen;

	EXPECT(fake_opaque_read(import->fd, &seen));
	EXPECT_EQ((uintptr_t)seen.memory + import->out.offset, address);
	EXPECT_EQ(seen.size, import->out.size);
}

int driver_try(uintptr_t address, size_t size, int device, struct driver_import *import)
{
	const struct import_region region = {
		.addr = (void *)address,
		.size = size,
		.fd = -1,
		.access = IMPORT_READ | IMPORT_WRITE,
	};
	int ret = import_opaque(&region, fake_rm.gpu[device].uuid, &import->opaque, &import->out);

	if (ret)
		return ret;
	import->fd = import->out.fd;
	if (import->fd < 0)
		ret = driver_open(import, device);
	if (ret)
		import->opaque->put(import->opaque);
	else
		driver_check_import(import, address);
	return ret;
}

struct driver_import driver_get(uintptr_t address, size_t size)
{
	struct driver_import import = { 0 };

	EXPECT_EQ(driver_try(address, size, 0, &import), 0);
	return import;
}

void driver_put(struct driver_import *import)
{
	close(import->fd);
	import->opaque->put(import->opaque);
}

uint64_t driver_once(uintptr_t address, size_t size)
{
	struct driver_import import = driver_get(address, size);

	driver_put(&import);
	return import.out.kept;
}

static int driver_memories_before;

void driver_begin(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct driver_import import;
	char *p = mmap(NULL, DRIVER_DEVICES * page, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	if (!fake_rm.is_present)
		fake_rm_reset(DRIVER_DEVICES);
	import_on_forget(driver_forget);
	for (int device = 0; device < DRIVER_DEVICES; device++) {
		EXPECT_EQ(driver_try((uintptr_t)p + (size_t)device * page, page, device, &import),
			  0);
		driver_put(&import);
	}
	driver_memories_before = fake_rm_held().memories;
	driver_forgotten = 0;
	fake_rm.pins_made = 0;
	log_clear();
}

int driver_memories(void)
{
	return fake_rm_held().memories - driver_memories_before;
}

static bool driver_has_memories(void *count)
{
	return driver_memories() == *(int *)count;
}

void driver_settle(int memories)
{
	EXPECT(process_settles(driver_has_memories, &memories));
}
