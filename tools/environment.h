/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variables that climport reads: the layer, the library, the net plugin, the Python
 * package and the tool.  tests/tools/environment compares the table with the source and with
 * docs/climport.1.md.
 */
#ifndef TOOLS_ENVIRONMENT_H
#define TOOLS_ENVIRONMENT_H

struct environment_variable {
	const char *name;
	const char *reader; /* the parts that read the variable */
	const char *type;   /* the values; NULL: util/setting_values.h has them */
	const char *preset; /* what holds if the variable is not set */
	const char *help;
};

/* Ends with a row without a name. */
extern const struct environment_variable environment_variables[];

/* Prints a sentence, on standard error, for each variable whose value is not understood. */
void environment_check(void);

/* Prints the table, with the values that are set.  Returns an exit status. */
int environment_print(void);

#endif /* TOOLS_ENVIRONMENT_H */
