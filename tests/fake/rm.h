/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the fake of NVIDIA's resource manager. */
#ifndef FAKE_RM_INTERNAL_H
#define FAKE_RM_INTERNAL_H

#include "fake_rm.h"
#include "opaque.h"

#include "import/nvidia/rm/rm_abi.h"

#include <sys/types.h>

enum { FAKE_RM_FILES = 4096, FAKE_RM_CONTROL = 0 };

/* Memory that objects and descriptors share. */
struct fake_rm_memory {
	int refs; /* 0: the place is free */
	void *bytes;
	size_t size;
	int gpu;
	bool is_cached, is_mapped;
};

/* An open node.  The number of a file is its place in the array. */
struct fake_rm_file {
	bool is_open;
	int node;		       /* FAKE_RM_CONTROL, or the GPU's number + 1 */
	struct fake_rm_file *control;  /* of a registered device node */
	struct fake_rm_memory *memory; /* of an exported descriptor */
};

/* A client, device or memory. */
struct fake_rm_object {
	uint32_t handle, client, parent; /* handle 0: the place is free */
	uint32_t class;
	int gpu;
	pid_t process;
	struct fake_rm_file *file;     /* of a client */
	struct fake_rm_memory *memory; /* of memory */
};

/* fake_rm_all_files.c */
void fake_rm_lock(void);
void fake_rm_unlock(void);

/* Below: the caller has the lock. */

/* NULL: no node of RM's. */
struct fake_rm_file *fake_rm_file_get(int fd);
off_t fake_rm_file_place(const struct fake_rm_file *file);
struct fake_rm_file *fake_rm_file_first(void);
/* Ends files without a descriptor. */
void fake_rm_files_collect(void);

/* Takes the error that the test set for the call of @name: whether the call fails. */
bool fake_rm_take_error(const char *name);
void fake_rm_note_misuse(const char *what);

/* rm_objects.c */
void fake_rm_objects_end(const struct fake_rm_file *control); /* the client of a closed file */
void fake_rm_memory_put(struct fake_rm_memory *memory);
void fake_rm_objects_count(struct fake_rm_held *held);
/* 0 or an errno. */
int fake_rm_answer(struct fake_rm_file *file, unsigned long request, void *parameters);

#endif
