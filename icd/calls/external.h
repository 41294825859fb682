/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ICD_CALLS_EXTERNAL_H
#define ICD_CALLS_EXTERNAL_H

/* The layer's function of cl_khr_external_memory, or NULL. */
void *external_function(const char *name);

#endif /* ICD_CALLS_EXTERNAL_H */
