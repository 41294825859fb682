/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error of a function of libclimport, for climport_last_error().
 *
 * The log keeps a thread's last fault (util/log.h), which the layer forgets at each of its calls.  So
 * a function of the library copies the sentence of its own error.
 */
#ifndef IMPORT_API_ERROR_H
#define IMPORT_API_ERROR_H

/* At the beginning of a function: a fault from here on is the function's. */
void climport_error_begin(void);

/* At the end.  Returns @ret, a negative errno or 0. */
int climport_error_end(int ret);

#endif
