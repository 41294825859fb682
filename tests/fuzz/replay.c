/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces libFuzzer: runs the seeds and random lists.  "replay --seeds DIR" writes the seeds. */
#include "fuzz_properties.h"

#include <stdio.h>
#include <string.h>

#define ROUNDS 300000
#define MAX_SIZE 24

/* Indexes into numbers[] of fuzz_properties.c. */
static const struct {
	const char *name;
	unsigned char size, bytes[13];
} seeds[] = {
	{ "empty", 0, { 0 } },
	{ "host", 2, { 0, 1 } },
	{ "dma_buf", 2, { 0, 2 } },
	{ "dma_buf_consistent", 4, { 0, 2, 3, 4 } },
	{ "consistent_first", 4, { 3, 5, 0, 2 } },
	{ "host_consistent", 4, { 0, 1, 3, 4 } },
	{ "twice", 4, { 0, 2, 0, 2 } },
	{ "protected", 4, { 0, 2, 6, 4 } },
	{ "terminated_early", 6, { 0, 1, 5, 5, 0, 2 } },
	{ "odd", 3, { 0, 2, 3 } },
	{ "raw", 11, { 0, 2, 255, 0xe3, 0x41, 0, 0, 0, 0, 0, 0 } },
};

static int write_seeds(const char *directory)
{
	char path[4096];

	for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", directory, seeds[i].name);
		file = fopen(path, "wb");
		if (!file) {
			perror(path);
			return 1;
		}
		fwrite(seeds[i].bytes, 1, seeds[i].size, file);
		fclose(file);
	}
	return 0;
}

static uint32_t random_next(void)
{
	static uint32_t state = 2463534242u;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

int main(int argc, char **argv)
{
	uint8_t data[MAX_SIZE];

	if (argc == 3 && !strcmp(argv[1], "--seeds"))
		return write_seeds(argv[2]);
	for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
		LLVMFuzzerTestOneInput(seeds[i].bytes, seeds[i].size);
	for (int round = 0; round < ROUNDS; round++) {
		size_t size = random_next() % (MAX_SIZE + 1);

		for (size_t i = 0; i < size; i++) /* mostly numbers known to the parser */
			data[i] = (uint8_t)(random_next() % 8 ? random_next() % 6 : random_next());
		LLVMFuzzerTestOneInput(data, size);
	}
	printf("%d random lists, %zu seeds\n", ROUNDS, sizeof(seeds) / sizeof(*seeds));
	return 0;
}
