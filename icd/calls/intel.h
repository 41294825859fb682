/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of Intel's extensions that use memory objects, or wait for commands. */
#ifndef ICD_CALLS_INTEL_H
#define ICD_CALLS_INTEL_H

/* The layer's function @name, in front of the drivers' functions; or NULL. */
void *intel_function(const char *name);

#endif /* ICD_CALLS_INTEL_H */
