// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Until 6.13 a namespace is an identifier, then a string. */
#include <linux/module.h>

MODULE_IMPORT_NS(DMA_BUF);
