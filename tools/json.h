/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for programs: docs/schema/ describes what each command writes.  A name is NULL in an array. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stdio.h>

struct json {
	FILE *out;
	int depth;
	bool more; /* the open object or array has a member */
};

void json_open(struct json *j, const char *name, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);

/* NULL and "" are null.  Bytes that are no UTF-8 become U+FFFD. */
void json_string(struct json *j, const char *name, const char *value);
void json_bool(struct json *j, const char *name, bool value);
void json_number(struct json *j, const char *name, double value);

#endif /* TOOLS_JSON_H */
