/* SPDX-License-Identifier: Apache-2.0 */
/* Random data, and host memory. */
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "cuda.h"
#include "gpu.h"

/* xorshift64* */
static uint64_t next_random(void)
{
	static uint64_t state;
	const char *seed = getenv("SEED");

	if (!state) {
		if (getrandom(&state, sizeof(state), 0) != (ssize_t)sizeof(state) || !state)
			state = 1;
		if (seed)
			state = strtoull(seed, NULL, 0);
		printf("# SEED=%#llx\n", (unsigned long long)state);
	}
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1d;
}

uint32_t random_number(void)
{
	return (uint32_t)(next_random() >> 32);
}

void random_fill(void *memory, size_t size)
{
	unsigned char *p = memory;

	for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
		uint64_t value = next_random();
		size_t rest = size - i;

		memcpy(p + i, &value, rest < sizeof(value) ? rest : sizeof(value));
	}
}

bool is_sum(const uint32_t *out, const uint32_t *a, const uint32_t *b, size_t count)
{
	size_t wrong = 0, first = 0;

	for (size_t i = count; i--;) {
		if (out[i] == a[i] + b[i])
			continue;
		wrong++;
		first = i;
	}
	if (wrong)
		printf("# %zu of %zu sums are wrong, the first is [%zu]: %#x, expected %#x\n",
		       wrong, count, first, out[first], a[first] + b[first]);
	return !wrong;
}

bool is_added(const unsigned char *now, const unsigned char *before, size_t size, unsigned added)
{
	size_t wrong = 0, first = 0;

	for (size_t i = size; i--;) {
		if (now[i] == (unsigned char)(before[i] + added))
			continue;
		wrong++;
		first = i;
	}
	if (wrong)
		printf("# %zu of %zu bytes are wrong, the first is [%zu]: %#x, expected %#x\n",
		       wrong, size, first, now[first], (unsigned char)(before[first] + added));
	return !wrong;
}

static void map_memfd(struct host *host)
{
	int fd = memfd_create("climport-test", MFD_CLOEXEC);

	EXPECT(fd >= 0);
	EXPECT_EQ(ftruncate(fd, (off_t)host->size), 0);
	host->memory = mmap(NULL, host->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	host->seen = mmap(NULL, host->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	EXPECT(host->memory != MAP_FAILED && host->seen != MAP_FAILED);
}

void host_alloc(struct host *host, enum host_kind kind, size_t size)
{
	*host = (struct host){ .kind = kind, .size = size };
	switch (kind) {
	case HOST_MMAP:
		host->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);
		EXPECT(host->memory != MAP_FAILED);
		break;
	case HOST_HEAP:
		host->memory = aligned_alloc(PAGE, size);
		break;
	case HOST_MEMFD:
		map_memfd(host);
		break;
	case HOST_CLIMPORT:
		EXPECT_EQ(climport_alloc(CLIMPORT_HOST, size, PAGE, gpu.is_opaque ? gpu.uuid : NULL,
					 &host->memory),
			  0);
		break;
	case HOST_CUDA:
		cuda_need();
		EXPECT_EQ(cuda.alloc_host(&host->memory, size, 0), 0);
		break;
	}
	EXPECT(host->memory);
	if (!host->seen)
		host->seen = host->memory;
}

void host_free(const struct host *host)
{
	switch (host->kind) {
	case HOST_MMAP:
		munmap(host->memory, host->size);
		break;
	case HOST_HEAP:
		free(host->memory);
		break;
	case HOST_MEMFD:
		munmap(host->memory, host->size);
		munmap(host->seen, host->size);
		break;
	case HOST_CLIMPORT:
		climport_free(host->memory);
		break;
	case HOST_CUDA:
		cuda.free_host(host->memory);
		break;
	}
}
