/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_KMOD_SHIM_MINMAX_H
#define TESTS_KMOD_SHIM_MINMAX_H

#define min(a, b) ((a) < (b) ? (a) : (b))

#endif
