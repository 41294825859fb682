/* SPDX-License-Identifier: Apache-2.0 */
#include "export_fixture.h"

#include <unistd.h>

const struct climport_dmabuf untouched = { -7, 77, 777, 7777 };

void *address_to_pointer(uintptr_t address)
{
	return (void *)address;
}

bool is_untouched(const struct climport_dmabuf *d)
{
	return d->fd == untouched.fd && d->offset == untouched.offset &&
	       d->size == untouched.size && d->whole == untouched.whole;
}

int climport_export_error(uintptr_t address, size_t size, unsigned int flags)
{
	struct climport_dmabuf d = untouched;
	int fds = process_count_descriptors(),
	    ret = climport_export_dmabuf(address_to_pointer(address), size, flags, &d, sizeof(d));

	EXPECT_EQ(process_count_descriptors(), fds);
	EXPECT(is_untouched(&d));
	return ret;
}

struct climport_dmabuf climport_export(uintptr_t address, size_t size, unsigned int flags)
{
	struct climport_dmabuf d = untouched;

	EXPECT_EQ(climport_export_dmabuf(address_to_pointer(address), size, flags, &d, sizeof(d)),
		  0);
	EXPECT_EQ(d.size, size);
	return d;
}

int dmabuf_read_byte(const struct climport_dmabuf *d, size_t i)
{
	unsigned char byte = 0;

	EXPECT_EQ(pread(d->fd, &byte, 1, (off_t)(d->offset + i)), 1);
	return byte;
}

void memory_set(uintptr_t address, unsigned char byte)
{
	*(unsigned char *)fake_cuda_memory(address) = byte;
}
