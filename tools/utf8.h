/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_UTF8_H
#define TOOLS_UTF8_H

#include <stddef.h>

/* The bytes of the character that @text begins with: 1 to 4, or 0 if the bytes are no UTF-8. */
size_t utf8_length(const char *text);

#endif /* TOOLS_UTF8_H */
