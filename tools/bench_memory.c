/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint32_t bench_random(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

int bench_memory_map(struct bench_memory *m, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_fatal("no memory for %zu bytes: %m", size);
	*m = (struct bench_memory){ p, size, .mapped = size, .dmabuf.fd = -1 };
	return 0;
}

int bench_memory_alloc(struct bench *b, struct bench_memory *m, size_t size)
{
	*m = (struct bench_memory){ .size = size, .dmabuf.fd = -1 };
	return climport_alloc_for_device(b->device, size, 4096, 0, &m->address, NULL);
}

int bench_memory_export(struct bench_memory *m)
{
	struct climport_dmabuf *out = &m->dmabuf;
	int ret = climport_export_dmabuf(m->address, m->size, 0, out, sizeof(*out));

	if (ret)
		out->fd = -1;
	return ret;
}

int bench_memory_import(struct bench *b, struct bench_memory *m)
{
	const cl_mem_flags flags = CL_MEM_READ_WRITE;
	cl_int err;

	if (m->dmabuf.fd >= 0)
		m->mem = climport_create_buffer(b->context, flags, NULL, &m->dmabuf, &err);
	else if (m->address)
		m->mem = clImportMemoryARM(b->context, flags, NULL, m->address, m->size, &err);
	else
		m->mem = clCreateBuffer(b->context, flags, m->size, NULL, &err);
	return err;
}

void bench_memory_release(struct bench_memory *m)
{
	clReleaseMemObject(m->mem);
	m->mem = NULL;
}

void bench_memory_free(struct bench_memory *m)
{
	if (m->dmabuf.fd >= 0)
		close(m->dmabuf.fd);
	if (m->mapped)
		munmap(m->address, m->mapped);
	else
		climport_free(m->address);
}

void bench_begin_size(struct bench *b, size_t size)
{
	if (!b->random) {
		struct bench_memory m;

		bench_memory_map(&m, b->largest); /* for as long as the program runs */
		b->random = m.address;
		for (size_t i = 0; i < b->largest / sizeof(*b->random); i++)
			b->random[i] = bench_random();
	}
	b->random_sum = 0;
	for (size_t i = 0; i < size / sizeof(*b->random); i++)
		b->random_sum += b->random[i];
}

/* One word is another each time, so that an old result is wrong. */
void bench_memory_fill(struct bench *b, struct bench_memory *m)
{
	uint32_t *words = m->address, word = bench_random();
	const size_t i = bench_random() % (m->size / sizeof(*words));

	memcpy(words, b->random, m->size);
	words[i] = word;
	m->sum = b->random_sum - b->random[i] + word;
}

void bench_memory_expect(struct bench *b, const struct bench_memory *m)
{
	const uint32_t sum = bench_sum_result(b, m->size);

	if (sum != m->sum)
		bench_fatal("wrong data in %zu bytes: the sum is %#x and not %#x", m->size, sum,
			    m->sum);
}
