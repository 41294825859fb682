/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/objects/user_event.h"

atomic_uint user_event_count;
