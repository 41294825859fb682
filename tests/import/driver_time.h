/* SPDX-License-Identifier: Apache-2.0 */
/* The time of registrations, by --wrap=cache_age: time stands still, for machines of any speed. */
#ifndef TESTS_IMPORT_DRIVER_TIME_H
#define TESTS_IMPORT_DRIVER_TIME_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_bool driver_time_passes; /* false at first */

#endif
