/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mock GPU (gdmabuf_mock) stands for a process's CUDA.  The importer (gdmabuf_importer) is a
 * driver of devices.
 *
 * If a module is not loaded, the test is skipped.  Functions without an error in their result end
 * the test on failure.
 */
#ifndef TESTS_KMOD_MOCKGPU_H
#define TESTS_KMOD_MOCKGPU_H

#include "modules/importer/importer.h"
#include "modules/mock/mock.h"

#include <stddef.h>
#include <stdint.h>

/* Opens the mock GPU and sets all settings to 0. */
int mockgpu_open(void);
uint64_t mockgpu_alloc(int gpu, size_t length, uint32_t flags);
/* 0 or -errno. */
int mockgpu_try_free(int gpu, uint64_t va);
void mockgpu_free(int gpu, uint64_t va);
void mockgpu_write(int gpu, uint64_t va, const void *bytes, size_t length);
void mockgpu_read(int gpu, uint64_t va, void *bytes, size_t length);
void mockgpu_config(int gpu, const struct mock_config *config);
struct mock_stats mockgpu_stats(int gpu);

int test_importer_open(void);
/* 0 or -errno. */
int test_importer_attach(int importer, int fd, uint32_t mode, uint32_t flags, uint32_t direction);
int importer_call(int importer, unsigned long request, uint32_t value);
int importer_access(int importer, unsigned long request, uint64_t offset, void *data,
		    uint32_t length);
int test_importer_map(int importer, struct gdmabuf_importer_map *map);

/* Sets a module parameter. */
void parameter_set(const char *module, const char *name, const char *value);

#endif
