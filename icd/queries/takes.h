/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers for a platform: the types of memory for each device.  An answer is a line of
 * text, in the result cache and in the pipe of a probe process.
 */
#ifndef ICD_QUERIES_TAKES_H
#define ICD_QUERIES_TAKES_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"

#define TAKES_MAX_DEVICES 64

/* Of a device alone: the probe process of the device died, and the driver is asked again in an hour. */
#define TAKES_DIED 128u

/* The bits of a device, and of all devices together: see support.h. */
struct takes {
	unsigned int platform;
	unsigned int count; /* of devices, in the order of clGetDeviceIDs() */
	unsigned char device[TAKES_MAX_DEVICES];
};

/* "takes PLATFORM COUNT DEVICE ... end".  False: no room, or no such line. */
bool takes_format(const struct takes *t, char *line, size_t size);
bool takes_parse(const char *line, struct takes *t);

/* The caller frees the key.  NULL: the platform is unknown.  @lasting: the answer may be kept. */
char *takes_key(cl_platform_id platform, bool *lasting);

/* The kept answer for a key. */
bool takes_get_kept(const char *key, struct takes *t);
void takes_keep(const char *key, const struct takes *t);

/* The kept answer for a platform. */
bool takes_recall(cl_platform_id platform, struct takes *t);

/* Whether a probe hung or crashed less than an hour ago.  Such a driver is left alone for a while. */
bool takes_is_unanswered(const char *key);
void takes_keep_unanswered(const char *key, const char *why);

/*
 * A probe has answered, perhaps after its program has given the probe up.  An answer of the moment is not
 * kept, and tells that the driver answers: later processes ask again, unless the driver died of a device.
 */
void takes_note_moment(const char *key, const struct takes *t);

#endif /* ICD_QUERIES_TAKES_H */
