/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of extensions that set a kernel's argument by address. */
#ifndef ICD_CALLS_KERNEL_POINTER_H
#define ICD_CALLS_KERNEL_POINTER_H

/* The layer's function @name, in front of a driver's @function; or NULL. */
void *kernel_pointer_function(const char *name, void *function);

#endif /* ICD_CALLS_KERNEL_POINTER_H */
