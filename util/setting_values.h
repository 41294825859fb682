/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that climport's environment variables may have: one table for all that read the
 * variables, and for the tool.  Variables with free values (files, names, sizes) are not in the table.
 */
#ifndef UTIL_SETTING_VALUES_H
#define UTIL_SETTING_VALUES_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a sentence about a value. */
#define SETTING_SENTENCE_SIZE 256

/* The name of the n-th variable of the table, or NULL. */
const char *setting_name(size_t number);

/* The values of a variable, for people: "1 or 0", "1 to 8".  NULL: not in the table. */
const char *setting_values(const char *name);

/*
 * Whether a value is understood: a value of the table, or any value of another variable.
 * @sentence: set to the reason if not
 */
bool setting_is_understood(const char *name, const char *value,
			   char sentence[SETTING_SENTENCE_SIZE]);

#endif /* UTIL_SETTING_VALUES_H */
