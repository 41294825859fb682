/* SPDX-License-Identifier: Apache-2.0 */
/* What libclimport.so exports. */
#ifndef IMPORT_API_PUBLIC_H
#define IMPORT_API_PUBLIC_H

#define PUBLIC __attribute__((visibility("default")))

#endif
