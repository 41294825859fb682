/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment variables with a choice of values (setting_values.h).  A value that is not understood is
 * logged once, and is taken for the default.
 */
#ifndef UTIL_SETTING_H
#define UTIL_SETTING_H

#include "util/shared.h"

#include <stdbool.h>

/* The value of a variable; NULL: not set, empty, not understood, or not for a privileged process. */
const char *setting_get(const char *name);

/* Whether a variable has the value. */
bool setting_is(const char *name, const char *value);

/* Logs every variable whose value is not understood, but CLIMPORT_LOG itself, which the log reports. */
void setting_report(void);

#endif /* UTIL_SETTING_H */
