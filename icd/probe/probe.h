/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climport-probe tests a platform's devices for a process that must not test them: a driver may crash or
 * hang.
 *
 * The application notices nothing of climport-probe: no SIGCHLD, no child for wait(), no descriptor, no
 * zombie.  Only waitpid() with __WALL or __WCLONE sees the process between, and may take its end.
 */
#ifndef ICD_PROBE_PROBE_H
#define ICD_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"

/**
 * probe_ask - have the record of a platform made
 * @with_images: images are tested, too, and what else takes long or kills drivers
 * @answer: room for @size bytes
 * @why: set to the reason if there is no answer
 *
 * Takes as long as climport-probe does, so a thread of climport's calls it.  Returns the bytes of the answer; 0: none.
 */
size_t probe_ask(cl_platform_id platform, bool with_images, void *answer, size_t size, char *why,
		 size_t why_size);

#endif /* ICD_PROBE_PROBE_H */
