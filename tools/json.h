/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdio.h>

/* Writes a string with its quotes.  Bytes that are no UTF-8 become U+FFFD. */
void json_quote(FILE *file, const char *string);

#endif /* TOOLS_JSON_H */
