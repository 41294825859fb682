/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions that several threads may ask at once: a single thread finds the answer, and the other
 * threads wait for the answer.
 *
 * A question is known by a text, its key, while a thread finds the answer.  Who keeps answers looks
 * for a kept answer before question_begin(), and again after it: another thread may have kept the answer
 * in between.
 */
#ifndef ICD_PROBE_QUESTION_H
#define ICD_PROBE_QUESTION_H

#include <stdbool.h>
#include <stddef.h>

#define QUESTION_ANSWER_SIZE 256 /* bytes */

/**
 * question_begin - the duty to find an answer, or the answer of a thread that has the duty
 * @answer: set if the function returns false and another thread has answered; else unchanged
 * @size: bytes, QUESTION_ANSWER_SIZE at most
 *
 * True: the caller finds the answer, and calls question_end() with the same key.  The caller is not cancelled
 * meanwhile.  False: another thread has answered; in a handler of fork(), which does not wait, no thread has.
 */
bool question_begin(const char *key, void *answer, size_t size);

void question_end(const char *key, const void *answer, size_t size);

#endif /* ICD_PROBE_QUESTION_H */
