/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sentence for each fault, from the function that found it.
 *
 * CLIMPORT_LOG=error prints faults to standard error, =debug also decisions; =off, or unset, prints
 * nothing.  What is printed is safe for a terminal.  Each thread keeps its last sentence, for the context's callback.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include "util/shared.h"

#include <stdbool.h>
#include <string.h>

#define LOG_MESSAGE_SIZE 256 /* a longer sentence is cut off */

/* strerror() for threads: the text of an unknown error is in the caller's frame. */
#define log_strerror(error) strerror_r(error, (char[48]){ 0 }, 48)

/* Logs a fault and returns -@error.  errno is not changed. */
int log_errno(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Logs a fault. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a decision under CLIMPORT_LOG=debug; not kept. */
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * From log_hold() to log_resume() the thread's faults wait: log_resume() logs the last, or with
 * @is_fault false prints the last as a decision.  For a first try that may fail.  In another pair of
 * the two, the fault waits for the outer log_resume().
 */
void log_hold(void);
void log_resume(bool is_fault);

/* Forgets the thread's last fault: log_last() then gives later faults alone. */
void log_clear(void);

/* The thread's last fault since log_clear(), or ""; valid until the next fault. */
const char *log_last(void);

#endif /* UTIL_LOG_H */
