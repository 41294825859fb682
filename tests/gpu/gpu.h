/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer on a real platform, through the loader.  main.c chooses the device; each test opens and
 * closes its contexts.
 */
#ifndef TESTS_GPU_GPU_H
#define TESTS_GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "harness.h"

#include <CL/climport.h>

#define PAGE ((size_t)4096)

typedef __typeof__(&clImportMemoryARM) import_function;

/* The tested device. */
struct gpu {
	cl_platform_id platform;
	cl_device_id device;
	import_function import; /* the layer's */
	unsigned char uuid[16];
	bool has_uuid;
	bool is_nvidia; /* NVIDIA's own driver */
	bool is_opaque; /* imports are made from opaque descriptors */
	size_t align;	/* CL_DEVICE_MEM_BASE_ADDR_ALIGN, in bytes */
};

extern struct gpu gpu;

/* Takes the first device of the first platform named @name; prints the reason on failure. */
bool gpu_choose(const char *name);
void gpu_describe(void);

struct session {
	cl_context context;
	cl_command_queue queue; /* in order */
	cl_program program;
	char notice[256]; /* why the last import failed */
};

/* The usual session of a test. */
extern struct session ours;
void gpu_session_open(struct session *s);
void gpu_session_close(struct session *s);
cl_command_queue gpu_session_queue(const struct session *s, cl_command_queue_properties properties);

/* On failure print the layer's reason and fail the test. */
cl_mem gpu_import_host(struct session *s, void *memory, size_t size);
cl_mem gpu_import_dmabuf(struct session *s, const struct climport_dmabuf *dmabuf);
cl_mem gpu_create_native(const struct session *s, size_t size);
cl_mem gpu_create_part(cl_mem mem, size_t origin, size_t size);

/* The error of an import into @ours that must fail; prints the reason. */
cl_int gpu_import_error(cl_mem_flags flags, const cl_import_properties_arm *properties,
			void *memory, size_t size);
bool gpu_notice_has(const char *text); /* in the last reason */

/* An import of a fresh page works: data both ways. */
void gpu_import_good(void);

/* Kernels: out[i] = a[i] + b[i] on 32 bits; a[i]++ on bytes.  Errors fail the test. */
struct after {
	cl_uint count;
	const cl_event *events;
};
void gpu_add(const struct session *s, cl_command_queue queue, const cl_mem mem[3], size_t count,
	     struct after after, cl_event *event);
void gpu_increment(const struct session *s, cl_command_queue queue, cl_mem mem, size_t count,
		   struct after after, cl_event *event);
#define AT_ONCE ((struct after){ 0, NULL })

/* gpu_increment() and clFinish() for threads, which cannot EXPECT.  Returns the first error. */
cl_int gpu_increment_quietly(const struct session *s, cl_command_queue queue, cl_mem mem,
			     size_t count);

/* New data.  The seed is printed; SEED in the environment sets the seed. */
void random_fill(void *memory, size_t size);
uint32_t random_number(void);

/* Every out[i] is a[i] + b[i]; says which is not. */
bool is_sum(const uint32_t *out, const uint32_t *a, const uint32_t *b, size_t count);
/* Every now[i] is before[i] + @added, in bytes. */
bool is_added(const unsigned char *now, const unsigned char *before, size_t size, unsigned added);

/* Kinds of the host's memory. */
enum host_kind { HOST_MMAP, HOST_HEAP, HOST_MEMFD, HOST_CLIMPORT, HOST_CUDA };

struct host {
	enum host_kind kind;
	void *memory; /* for the import */
	void *seen;   /* for the host's reads and writes; for a memfd, a second mapping */
	size_t size;
};

void host_alloc(struct host *host, enum host_kind kind, size_t size);
void host_free(const struct host *host);

#endif
