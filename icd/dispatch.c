/* SPDX-License-Identifier: Apache-2.0 */
/* What is not named in intercept.h is not touched, and costs nothing. */
#include "icd/intercept.h"
#include "icd/layer.h"

#define ENTRY(f) .f = layer_##f,

const struct _cl_icd_dispatch layer_dispatch = { INTERCEPTED(ENTRY) };
