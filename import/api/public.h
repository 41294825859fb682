/* SPDX-License-Identifier: Apache-2.0 */
/* The exports of libclimport.so. */
#ifndef IMPORT_API_PUBLIC_H
#define IMPORT_API_PUBLIC_H

#define PUBLIC __attribute__((visibility("default")))

#endif
