/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process climport-probe tests a platform's devices for a process that must not test them: a driver may crash or
 * hang.
 *
 * The caller notices nothing of climport-probe: no SIGCHLD, no child for wait(), no descriptor, no
 * zombie.  Only waitpid() with __WALL or __WCLONE sees the process between (between.h), and may
 * take the end of the process between.
 */
#ifndef ICD_PROBE_PROBE_H
#define ICD_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"

/**
 * probe_ask - have the record of a platform made
 * @with_images: images are tested, too, and what else takes long or kills drivers
 * @patience_ms: for the answer; the probe goes on
 * @text: set to the record (facts/facts.h) or, if the function returns false, to the reason
 */
bool probe_ask(cl_platform_id platform, bool with_images, unsigned int patience_ms, char *text,
	       size_t size);

/*
 * In climport-probe: whether @key, of the process that asks, is the platform's.  The key also has the environment's
 * part of the keys of records (identity.h), which climport-probe takes over.
 */
bool probe_is_platform(cl_platform_id platform, const char *key);

#endif /* ICD_PROBE_PROBE_H */
