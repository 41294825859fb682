/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The platforms of the program's queries, with their answers.  A single thread finds the answer
 * for a platform; other threads wait meanwhile.
 */
#ifndef ICD_QUERIES_ASKED_H
#define ICD_QUERIES_ASKED_H

#include <stdbool.h>

#include "icd/queries/takes.h"

struct asked;

/**
 * asked_begin - the answer for a platform, or the duty to find the answer
 * @answered: set; if true, @t is set too
 *
 * Waits while a thread finds the answer, but not in a handler of fork(), where @answered
 * is false.  Returns NULL, or a record: then the caller finds the answer and calls asked_end().
 */
struct asked *asked_begin(cl_platform_id platform, bool *answered, struct takes *t);

/* @answered: false if no answer could be found; the process does not try again. */
void asked_end(struct asked *a, bool answered, const struct takes *t);

/* Whether the platform has a record. */
bool asked_has(cl_platform_id platform);

/* An answer of an earlier query.  Does not wait. */
bool asked_get(cl_platform_id platform, struct takes *t);

/* Records a platform with a kept answer, or NULL: no answer is kept. */
void asked_note(cl_platform_id platform, const struct takes *kept);

#endif /* ICD_QUERIES_ASKED_H */
