/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "util/cl_names.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

const char *const memory_names[MEMORY_KINDS] = {
	[MEMORY_NATIVE] = "native buffer",
	[MEMORY_DEVICE] = "imported device memory",
	[MEMORY_HOST] = "imported climport_alloc memory",
	[MEMORY_PLAIN] = "imported plain host memory",
	[MEMORY_SMALL] = "imported small host pages",
	[MEMORY_HUGE] = "imported huge host pages",
};

uint32_t bench_random(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	if (state == 0x9e3779b97f4a7c15)
		state ^= (uint64_t)(bench_now() * 1e9);
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

bool memory_is_host(const struct memory *m)
{
	return m->kind != MEMORY_NATIVE && m->kind != MEMORY_DEVICE;
}

static int bench_memory_map(struct memory *m, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	m->mapping = m->address = p;
	m->mapped = size;
	return 0;
}

/* Pages are small also where the system makes huge ones of all memory. */
static int bench_memory_map_small(struct memory *m, size_t size)
{
	int ret = bench_memory_map(m, size);

	if (!ret)
		madvise(m->mapping, m->mapped, MADV_NOHUGEPAGE); /* fails where none are huge */
	return ret;
}

static bool bench_memory_has_huge_pages(void)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char text[64] = "[never]";

	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return text[0] && !strstr(text, "[never]");
}

static int bench_memory_map_huge(struct memory *m, size_t size)
{
	int ret;

	if (!bench_memory_has_huge_pages())
		return -EOPNOTSUPP;
	ret = bench_memory_map(m, (size + 2 * HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	if (ret)
		return ret;
	m->address = (void *)(((uintptr_t)m->mapping + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	madvise(m->mapping, m->mapped, MADV_HUGEPAGE);
	return 0;
}

static int alloc_device(struct bench *b, struct memory *m, size_t size)
{
	int ret = climport_alloc(CLIMPORT_DEVICE, size, 0, b->uuid, &m->address);

	if (ret)
		return ret;
	ret = climport_export_dmabuf(m->address, size, 0, &m->dmabuf, sizeof(m->dmabuf));
	if (ret)
		climport_free(m->address);
	return ret;
}

static int bench_memory_alloc(struct bench *b, struct memory *m, size_t size)
{
	switch (m->kind) {
	case MEMORY_DEVICE:
		return alloc_device(b, m, size);
	case MEMORY_HOST:
		return climport_alloc(CLIMPORT_HOST, size, 4096, b->is_cuda ? b->uuid : NULL,
				      &m->address);
	case MEMORY_PLAIN:
		return bench_memory_map(m, size);
	case MEMORY_SMALL:
		return bench_memory_map_small(m, size);
	case MEMORY_HUGE:
		return bench_memory_map_huge(m, size);
	default:
		return 0;
	}
}

int bench_memory_create(struct bench *b, struct memory *m, enum memory_kind kind, size_t size)
{
	char why[64];
	int ret;

	*m = (struct memory){ .kind = kind, .size = size, .dmabuf.fd = -1 };
	if (b->lacks[kind])
		return -EOPNOTSUPP; /* reported before */
	ret = bench_memory_alloc(b, m, size);
	if (!ret) {
		m->capacity = size;
		return 0;
	}
	b->lacks[kind] = ret == -EOPNOTSUPP || ret == -ENODEV;
	snprintf(why, sizeof(why), "cannot be allocated: %s", strerror(-ret));
	bench_skip("", memory_names[kind], why);
	return ret;
}

void bench_memory_destroy(struct memory *m)
{
	if (!m->capacity)
		return;
	if (m->dmabuf.fd >= 0)
		close(m->dmabuf.fd);
	if (m->mapped)
		munmap(m->mapping, m->mapped);
	else
		climport_free(m->address);
	m->capacity = 0;
}

int memory_create(struct bench *b, struct memory *m)
{
	struct climport_dmabuf part = {
		.fd = m->dmabuf.fd,
		.offset = m->dmabuf.offset,
		.size = m->size,
	};
	cl_int err;

	if (m->kind == MEMORY_NATIVE)
		m->mem = clCreateBuffer(b->context, CL_MEM_READ_WRITE, m->size, NULL, &err);
	else if (m->kind == MEMORY_DEVICE)
		m->mem = climport_create_buffer(b->context, CL_MEM_READ_WRITE, NULL, &part, &err);
	else
		m->mem = b->import(b->context, CL_MEM_READ_WRITE, NULL, m->address, m->size, &err);
	m->err = err;
	return err;
}

/* The layer tells libclimport alone the reason, and an import of host memory calls the layer. */
const char *bench_memory_why(const struct memory *m)
{
	static char text[64];

	if (m->kind == MEMORY_DEVICE && *climport_last_error())
		return climport_last_error();
	snprintf(text, sizeof(text), "%s",
		 m->err ? cl_error_name(m->err) : "there is no buffer of it");
	return text;
}

void memory_release(struct memory *m)
{
	clReleaseMemObject(m->mem);
	m->mem = NULL;
}

/* Imports refuse the driver's own copies before version 1.1.0, so a kernel copies. */
static void fill_device(struct bench *b, struct memory *m)
{
	const cl_ulong n = m->size / sizeof(cl_uint4);
	const size_t items = bench_items(b, m->size);
	cl_int err;
	cl_mem from = clCreateBuffer(b->context, CL_MEM_COPY_HOST_PTR, m->size, b->random, &err);

	bench_check(err, "clCreateBuffer");
	clSetKernelArg(b->copy, 0, sizeof(m->mem), &m->mem);
	clSetKernelArg(b->copy, 1, sizeof(from), &from);
	clSetKernelArg(b->copy, 2, sizeof(n), &n);
	bench_check(clEnqueueNDRangeKernel(b->queue, b->copy, 1, NULL, &items, &b->local, 0, NULL,
					   NULL),
		    "the kernel that copies");
	bench_check(clFinish(b->queue), "clFinish");
	clReleaseMemObject(from);
}

void memory_fill(struct bench *b, struct memory *m)
{
	if (memory_is_host(m))
		memcpy(m->address, b->random, m->size);
	else
		fill_device(b, m);
	m->sum = 0;
	for (size_t i = 0; i < m->size / sizeof(*b->random); i++)
		m->sum += b->random[i];
}

size_t memory_change(struct memory *m)
{
	uint32_t *words = m->address, now = bench_random();
	size_t i = bench_random() % (m->size / sizeof(*words));

	if (!memory_is_host(m))
		return 0;
	m->sum += now - words[i];
	words[i] = now;
	return i;
}

/* A word, read by the memory's owner: the host, CUDA or the driver. */
uint32_t memory_word(struct bench *b, const struct memory *m, size_t index)
{
	const size_t offset = index * sizeof(uint32_t);
	uint32_t word = 0;

	if (memory_is_host(m))
		return ((const volatile uint32_t *)m->address)[index];
	if (m->kind == MEMORY_NATIVE)
		bench_check(clEnqueueReadBuffer(b->queue, m->mem, CL_TRUE, offset, sizeof(word),
						&word, 0, NULL, NULL),
			    "clEnqueueReadBuffer");
	else if (b->cuda &&
		 bench_cuda_read(b->cuda, &word, (uintptr_t)m->address + offset, sizeof(word)))
		bench_fatal("CUDA cannot read %s", memory_names[m->kind]);
	return word;
}

void memory_expect(const struct memory *m, uint32_t sum)
{
	if (sum != m->sum)
		bench_fatal("%s, %zu bytes: wrong data, the sum is %#x and not %#x",
			    memory_names[m->kind], m->size, sum, m->sum);
}
