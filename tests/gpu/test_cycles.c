/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of imports, by a thread and by eight threads, and fork(), leave nothing behind. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda.h"
#include "gpu.h"
#include "process.h"

#define CYCLES 10000
#define WARM 500
#define RANGE ((size_t)1 << 20)

/* A leak makes the descriptors or the resident bytes grow or, with CUDA, the device's bytes. */
struct usage {
	size_t fds, resident, device;
};

static size_t usage_read_resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	size_t pages = 0;

	if (file && fscanf(file, "%*u %zu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * PAGE;
}

static struct usage usage_read(void)
{
	struct usage u = { 0 };
	size_t room = 0, total = 0;

	/* First, as the first time takes descriptors and memory. */
	if (gpu.has_uuid && !cuda_open(gpu.uuid) && !cuda.info(&room, &total))
		u.device = total - room;
	u.fds = (size_t)process_count_descriptors();
	u.resident = usage_read_resident();
	return u;
}

static bool usage_is_back(const struct usage *before, const struct usage *now)
{
	return now->fds <= before->fds && now->resident <= before->resident + (16 << 20) &&
	       now->device <= before->device + (32 << 20);
}

/* Drivers may free late: up to ten seconds. */
static bool usage_settles(const struct usage *before)
{
	const struct timespec tick = { 0, 50000000 };
	struct usage now = usage_read();

	for (int i = 0; i < 200 && !usage_is_back(before, &now); i++) {
		nanosleep(&tick, NULL);
		now = usage_read();
	}
	printf("# before: %zu descriptors, %zu KiB resident, %zu MiB of the device in use\n",
	       before->fds, before->resident >> 10, before->device >> 20);
	printf("# after:  %zu descriptors, %zu KiB resident, %zu MiB of the device in use\n",
	       now.fds, now.resident >> 10, now.device >> 20);
	return usage_is_back(before, &now);
}

/* Every hundredth is used. */
static void cycle_use(cl_mem mem, int cycle)
{
	if (cycle % 100)
		return;
	gpu_increment(&ours, ours.queue, mem, 64 << 10, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
}

static void host_cycles(unsigned char *p, int count)
{
	for (int i = 0; i < count; i++) {
		size_t size = (64 << 10) + random_number() % (RANGE - (64 << 10) + 1);
		unsigned char before = p[4096];
		cl_mem mem = gpu_import_host(&ours, p, size);

		cycle_use(mem, i);
		clReleaseMemObject(mem);
		EXPECT_EQ(p[4096], (unsigned char)(before + (i % 100 == 0)));
	}
}

/* Registrations that are kept go with the memory. */
static void host_cycles_on_new_memory(int count)
{
	struct host h;

	host_alloc(&h, HOST_MMAP, RANGE);
	random_fill(h.seen, RANGE);
	host_cycles(h.memory, count);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	host_free(&h);
}

TEST(cycles_host, "10,000 imports of host memory of 64 KiB to 1 MiB leave nothing behind.")
{
	struct usage before;

	gpu_session_open(&ours);
	host_cycles_on_new_memory(WARM);
	before = usage_read();
	host_cycles_on_new_memory(CYCLES);
	EXPECT(usage_settles(&before));
	gpu_session_close(&ours);
}

/* Export, import, release. */
static void device_cycles(void *address, int count)
{
	struct climport_dmabuf d;
	cl_mem mem;

	for (int i = 0; i < count; i++) {
		EXPECT_EQ(climport_export_dmabuf(address, RANGE, i % 2 ? CLIMPORT_KEEP : 0, &d,
						 sizeof(d)),
			  0);
		mem = gpu_import_dmabuf(&ours, &d);
		close(d.fd);
		cycle_use(mem, i);
		clReleaseMemObject(mem);
	}
}

TEST(cycles_device, "10,000 exports and imports of device memory leave nothing behind.")
{
	struct usage before;
	void *address;

	cuda_need();
	gpu_session_open(&ours);
	EXPECT_EQ(climport_alloc(CLIMPORT_DEVICE, RANGE, 0, gpu.uuid, &address), 0);
	device_cycles(address, WARM);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	before = usage_read();
	device_cycles(address, CYCLES);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	EXPECT(usage_settles(&before));
	climport_free(address);
	gpu_session_close(&ours);
}

static void alloc_cycles(int count)
{
	void *address;

	for (int i = 0; i < count; i++) {
		size_t size = ((size_t)1 << 20) * (1 + i % 8);

		EXPECT_EQ(climport_alloc(CLIMPORT_DEVICE, size, 0, gpu.uuid, &address), 0);
		device_cycles(address, 1);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		climport_free(address);
	}
}

TEST(cycles_alloc,
     "1000 cycles of allocation, export, import, use, release and free leave nothing behind.")
{
	struct usage before;
	struct climport_stats stats;

	cuda_need();
	gpu_session_open(&ours);
	alloc_cycles(50);
	before = usage_read();
	alloc_cycles(1000);
	EXPECT(usage_settles(&before));
	climport_get_stats(&stats, sizeof(stats));
	EXPECT_EQ(stats.bytes_allocated, 0);
	gpu_session_close(&ours);
}

static void refused_cycles(void *memory, int count)
{
	cl_int err;

	for (int i = 0; i < count; i++) {
		cl_mem mem = gpu.import(ours.context, 0, NULL, memory, RANGE, &err);

		EXPECT(!mem);
		EXPECT_EQ(err, CL_INVALID_OPERATION);
	}
}

TEST(cycles_refused, "1000 refused imports leave nothing behind, and a good import works.")
{
	struct usage before;
	struct host h;

	gpu_session_open(&ours);
	host_alloc(&h, HOST_MMAP, RANGE);
	EXPECT_EQ(mprotect((char *)h.memory + RANGE - PAGE, PAGE, PROT_NONE), 0);
	gpu_import_good();
	refused_cycles(h.memory, 10);
	before = usage_read();
	refused_cycles(h.memory, 1000);
	gpu_import_good();
	EXPECT(usage_settles(&before));
	host_free(&h);
	gpu_session_close(&ours);
}

#define THREADS 8

struct worker {
	pthread_t thread;
	struct host host;
	cl_command_queue queue;
	unsigned char before[64 << 10];
	const char *fault;
	cl_int err;
	int used;
};

static void *cycle_work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < 200 && !w->fault; i++) {
		size_t size = (64 << 10) * (size_t)(1 + i % 16);
		cl_mem mem = gpu.import(ours.context, 0, NULL, w->host.memory, size, &w->err);

		if (!mem) {
			w->fault = "an import";
			break;
		}
		if (i % 10 == 0) {
			w->err = gpu_increment_quietly(&ours, w->queue, mem, sizeof(w->before));
			w->used++;
			if (w->err)
				w->fault = "a kernel";
		}
		clReleaseMemObject(mem);
	}
	return NULL;
}

static void workers_open(struct worker *workers)
{
	for (int i = 0; i < THREADS; i++) {
		struct worker *w = &workers[i];

		host_alloc(&w->host, i % 2 ? HOST_MEMFD : HOST_MMAP, RANGE);
		random_fill(w->host.seen, RANGE);
		memcpy(w->before, w->host.seen, sizeof(w->before));
		w->queue = gpu_session_queue(&ours, 0);
	}
}

static void workers_run(struct worker *workers)
{
	for (int i = 0; i < THREADS; i++)
		EXPECT_EQ(pthread_create(&workers[i].thread, NULL, cycle_work, &workers[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < THREADS; i++) {
		struct worker *w = &workers[i];

		if (w->fault)
			printf("# thread %d: %s failed: error %d: %s\n", i, w->fault, w->err,
			       ours.notice);
		EXPECT(!w->fault);
		EXPECT(is_added(w->host.seen, w->before, sizeof(w->before), (unsigned)w->used));
	}
}

static void workers_close(struct worker *workers)
{
	for (int i = 0; i < THREADS; i++) {
		clReleaseCommandQueue(workers[i].queue);
		host_free(&workers[i].host);
	}
}

TEST(threads, "Eight threads that import, use and release memory at once leave nothing behind.")
{
	static struct worker workers[THREADS];
	struct usage before;

	gpu_session_open(&ours);
	workers_open(workers);
	workers_run(workers); /* lets the heap of every thread grow to full size */
	before = usage_read();
	workers_run(workers);
	EXPECT(usage_settles(&before));
	workers_close(workers);
	gpu_session_close(&ours);
}

/* The exit status of a child that only waits and exits; -1 if the child hangs. */
static int child_status(pid_t child)
{
	const struct timespec tick = { 0, 20000000 };
	int status;

	for (int i = 0; i < 500; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		nanosleep(&tick, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return -1;
}

TEST(forked, "The parent's imports work in place while a child lives, and after the child's exit.")
{
	unsigned char before[PAGE], byte;
	int gate[2];
	struct host h;
	cl_mem mem;
	pid_t child;

	gpu_session_open(&ours);
	host_alloc(&h, HOST_MMAP, PAGE);
	random_fill(h.seen, PAGE);
	mem = gpu_import_host(&ours, h.memory, PAGE);
	gpu_increment(&ours, ours.queue, mem, PAGE, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	EXPECT_EQ(pipe(gate), 0);
	fflush(NULL);
	child = fork();
	EXPECT(child >= 0);
	if (!child) {
		close(gate[1]);
		_exit(read(gate[0], &byte, 1) != 0); /* exit() hangs in NVIDIA's handlers */
	}
	close(gate[0]);
	for (int round = 0; round < 20; round++) {
		if (round == 10) {
			close(gate[1]);
			EXPECT_EQ(child_status(child), 0);
		}
		random_fill(h.seen, PAGE);
		memcpy(before, h.seen, PAGE);
		gpu_increment(&ours, ours.queue, mem, PAGE, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT(is_added(h.seen, before, PAGE, 1));
	}
	clReleaseMemObject(mem);
	host_free(&h);
	gpu_session_close(&ours);
}
