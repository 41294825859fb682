/* SPDX-License-Identifier: Apache-2.0 */
/* The host's memory: data of kernels and of the host, in place. */
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"

#define LARGE (((size_t)64 << 20) + PAGE)

/* Three imports: the host writes two, a kernel the third; then all anew, without new imports. */
static void host_data_round(enum host_kind kind, size_t size)
{
	const size_t count = size / sizeof(uint32_t);
	struct host host[3]; /* out, a, b */
	cl_mem mem[3];

	for (int i = 0; i < 3; i++) {
		host_alloc(&host[i], kind, size);
		mem[i] = gpu_import_host(&ours, host[i].memory, size);
	}
	for (int round = 0; round < 3; round++) {
		random_fill(host[1].seen, size);
		random_fill(host[2].seen, size);
		memset(host[0].seen, 0xa5 + round, size);
		gpu_add(&ours, ours.queue, mem, count, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT(is_sum(host[0].seen, host[1].seen, host[2].seen, count));
	}
	for (int i = 0; i < 3; i++) {
		clReleaseMemObject(mem[i]);
		host_free(&host[i]);
	}
}

static void host_data_rounds(enum host_kind kind)
{
	gpu_session_open(&ours);
	host_data_round(kind, PAGE);
	host_data_round(kind, (size_t)1 << 20);
	host_data_round(kind, LARGE);
	gpu_session_close(&ours);
}

TEST(data_mmap,
     "Anonymous memory of 4 KiB, 1 MiB and 64 MiB + 4 KiB takes data both ways, without copies.")
{
	host_data_rounds(HOST_MMAP);
}

TEST(data_heap, "Memory of the heap takes data both ways, without copies.")
{
	host_data_rounds(HOST_HEAP);
}

TEST(data_memfd,
     "A memfd that the host accesses by a second mapping takes data both ways, without copies.")
{
	host_data_rounds(HOST_MEMFD);
}

TEST(data_climport, "Memory of climport_alloc(CLIMPORT_HOST) takes data both ways, without copies.")
{
	host_data_rounds(HOST_CLIMPORT);
}

TEST(data_cuda_host, "Memory of cuMemHostAlloc() takes data both ways, without copies.")
{
	host_data_rounds(HOST_CUDA);
}

TEST(data_mixed, "A kernel can use imports of several kinds together with native buffers.")
{
	struct host a, b;
	uint32_t *out = malloc(LARGE);
	cl_mem mem[3];

	EXPECT(out);
	gpu_session_open(&ours);
	host_alloc(&a, HOST_MEMFD, LARGE);
	host_alloc(&b, HOST_CLIMPORT, LARGE);
	mem[0] = gpu_create_native(&ours, LARGE);
	mem[1] = gpu_import_host(&ours, a.memory, LARGE);
	mem[2] = gpu_import_host(&ours, b.memory, LARGE);
	for (int round = 0; round < 5; round++) {
		random_fill(a.seen, LARGE);
		random_fill(b.seen, LARGE);
		memset(out, 0xa5, LARGE);
		gpu_add(&ours, ours.queue, mem, LARGE / 4, AT_ONCE, NULL);
		EXPECT_EQ(clEnqueueReadBuffer(ours.queue, mem[0], CL_TRUE, 0, LARGE, out, 0, NULL,
					      NULL),
			  CL_SUCCESS);
		EXPECT(is_sum(out, a.seen, b.seen, LARGE / 4));
	}
	for (int i = 0; i < 3; i++)
		clReleaseMemObject(mem[i]);
	host_free(&a);
	host_free(&b);
	free(out);
	gpu_session_close(&ours);
}

TEST(data_twice, "Kernels on two imports of a range see each other's bytes.")
{
	struct host h;
	unsigned char before[PAGE];
	cl_mem mem[2];

	gpu_session_open(&ours);
	host_alloc(&h, HOST_MMAP, PAGE);
	random_fill(h.seen, PAGE);
	memcpy(before, h.seen, PAGE);
	for (int i = 0; i < 2; i++)
		mem[i] = gpu_import_host(&ours, h.memory, PAGE);
	for (int i = 0; i < 50; i++)
		gpu_increment(&ours, ours.queue, mem[i % 2], PAGE, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	EXPECT(is_added(h.seen, before, PAGE, 50));
	clReleaseMemObject(mem[0]);
	gpu_increment(&ours, ours.queue, mem[1], PAGE, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	EXPECT(is_added(h.seen, before, PAGE, 51));
	clReleaseMemObject(mem[1]);
	host_free(&h);
	gpu_session_close(&ours);
}

/* A number in a file, such as a container's limit; SIZE_MAX without a number. */
static size_t host_read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	size_t number = SIZE_MAX;

	if (file && fscanf(file, "%zu", &number) != 1)
		number = SIZE_MAX;
	if (file)
		fclose(file);
	return number;
}

static size_t host_largest_size(void)
{
	size_t room = (size_t)sysconf(_SC_AVPHYS_PAGES) * PAGE,
	       limit = host_read_number("/sys/fs/cgroup/memory.max");
	cl_ulong most = 0;

	clGetDeviceInfo(gpu.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, NULL);
	if (limit < room)
		room = limit;
	room /= 2; /* other programs need memory, too */
	return room < most ? room : most;
}

/* Kernels on the first and on the last page. */
static void check_ends(size_t size)
{
	unsigned char before[2][PAGE], *p;
	struct host h;
	cl_mem mem, end;

	host_alloc(&h, HOST_MMAP, size);
	p = h.memory;
	random_fill(p, PAGE);
	random_fill(p + size - PAGE, PAGE);
	memcpy(before[0], p, PAGE);
	memcpy(before[1], p + size - PAGE, PAGE);
	mem = gpu_import_host(&ours, p, size);
	gpu_increment(&ours, ours.queue, mem, PAGE, AT_ONCE, NULL);
	end = gpu_create_part(mem, size - PAGE, PAGE);
	gpu_increment(&ours, ours.queue, end, PAGE, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	EXPECT(is_added(p, before[0], PAGE, size == PAGE ? 2 : 1));
	EXPECT(is_added(p + size - PAGE, before[1], PAGE, size == PAGE ? 2 : 1));
	clReleaseMemObject(end);
	clReleaseMemObject(mem);
	host_free(&h);
}

TEST(sizes, "Imports of 4 KiB to 16 GiB work, up to half of the memory.")
{
	const size_t most = host_largest_size();
	size_t size = PAGE;

	gpu_session_open(&ours);
	for (; size <= (size_t)16 << 30 && size <= most; size *= 4)
		check_ends(size);
	printf("# the largest import was of %zu bytes\n", size / 4);
	gpu_session_close(&ours);
	EXPECT(size > (size_t)16 << 20);
}
