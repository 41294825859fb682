/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of /dev/gdmabuf: every ioctl, mostly with right arguments. */
#include "calls.h"
#include "memory.h"
#include "shared.h"

#include <linux/gdmabuf.h>
#include <string.h>
#include <sys/ioctl.h>

void fuzz_ioctl_any(void)
{
	uint64_t words[40];
	uint32_t size = fuzz_any(2) ? (uint32_t)fuzz_any_edge() : fuzz_any(sizeof(words));
	uint32_t command = _IO('G', 0x80 + fuzz_any(7));

	for (int i = 0; i < 40; i++)
		words[i] = fuzz_any(2) ? fuzz_any_edge() : 0;
	memcpy(words, &size, sizeof(size));
	if (!fuzz_any(10))
		command = (uint32_t)fuzz_any64();
	ioctl(fuzz_any(5) ? ANY_OF(shared.contexts) : fuzz_any_fd(), command,
	      fuzz_any_argument(words));
}

static void fuzz_export(int is_gpu)
{
	union {
		struct gdmabuf_export e;
		uint64_t words[16];
	} c = { .e.size = fuzz_any_size(sizeof(struct gdmabuf_export)) };
	size_t length;
	unsigned char *at = fuzz_any_range(&length);
	int wild = !fuzz_any(6);

	c.e.address =
		is_gpu ? ANY_OF(shared.allocations) + 0x10000ULL * fuzz_any(fuzz_any(3) ? 1 : 16)
		       : (uintptr_t)at;
	c.e.length = is_gpu ? 0x10000ULL * fuzz_any(18) : length;
	c.e.flags = fuzz_any_flags(is_gpu ? 0 : GDMABUF_READ_ONLY);
	if (wild) {
		/* Memory outside the arena is the fuzzer's own, and must not be written. */
		c.e.flags |= GDMABUF_READ_ONLY;
		c.e.address = fuzz_any(2) ? fuzz_any_edge() : (uintptr_t)&c & -(uintptr_t)FUZZ_PAGE;
		c.e.length = fuzz_any(2) ? fuzz_any_edge() : (uint64_t)FUZZ_PAGE * fuzz_any(4);
		if (is_gpu)
			c.e.flags &= ~GDMABUF_READ_ONLY;
	}
	if (!fuzz_any(30))
		c.e.reserved = (uint32_t)fuzz_any_edge();
	if (ioctl(ANY_OF(shared.contexts), is_gpu ? GDMABUF_EXPORT_GPU : GDMABUF_EXPORT_HOST,
		  fuzz_any_argument(&c.e)))
		return;
	fuzz_replace_fd(PLACE_IN(shared.buffers), c.e.out_fd);
}

void fuzz_export_gpu(void)
{
	fuzz_export(1);
}

void fuzz_export_host(void)
{
	fuzz_export(0);
}

void fuzz_watch_host(void)
{
	union {
		struct gdmabuf_watch_host w;
		uint64_t words[16];
	} c = { .w.size = fuzz_any_size(sizeof(struct gdmabuf_watch_host)) };
	size_t length;

	c.w.flags = fuzz_any(30) ? 0 : (uint32_t)fuzz_any_edge();
	c.w.address = (uintptr_t)fuzz_any_range(&length);
	c.w.length = length;
	if (!fuzz_any(6)) {
		c.w.address = fuzz_any_edge();
		c.w.length = fuzz_any(2) ? fuzz_any_edge() : (uint64_t)FUZZ_PAGE * fuzz_any(4);
	}
	if (!ioctl(ANY_OF(shared.contexts), GDMABUF_WATCH_HOST, fuzz_any_argument(&c.w)))
		atomic_store(PLACE_IN(shared.watches),
			     (uint64_t)c.w.out_slot << 32 | c.w.out_generation);
}

void fuzz_unwatch_host(void)
{
	uint64_t id = fuzz_any(10) ? ANY_OF(shared.watches) : fuzz_any_edge();
	struct gdmabuf_watch_id c = {
		.size = fuzz_any_size(sizeof(c)),
		.flags = fuzz_any(30) ? 0 : (uint32_t)fuzz_any_edge(),
		.slot = (uint32_t)(id >> 32),
		.generation = (uint32_t)id,
	};

	ioctl(ANY_OF(shared.contexts), GDMABUF_UNWATCH_HOST, fuzz_any_argument(&c));
}

void fuzz_read_caps(void)
{
	union {
		struct gdmabuf_caps caps;
		uint64_t words[32];
	} c = { .caps.size = fuzz_any_size(sizeof(c.caps)) };

	ioctl(ANY_OF(shared.contexts), GDMABUF_CAPS, fuzz_any_argument(&c));
}
