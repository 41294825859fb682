/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>
