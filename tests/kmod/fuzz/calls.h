/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fuzzer's calls of the modules, each with random arguments on random entries of the shared
 * tables.  More calls: shared.h (descriptors), memory.h (mappings).
 */
#ifndef TESTS_KMOD_FUZZ_CALLS_H
#define TESTS_KMOD_FUZZ_CALLS_H

/* gdmabuf.c */
void fuzz_ioctl_any(void);
void fuzz_export_gpu(void);
void fuzz_export_host(void);
void fuzz_watch_host(void);
void fuzz_unwatch_host(void);
void fuzz_read_caps(void);

/* devices.c */
void fuzz_use_gpu(void);
void fuzz_use_importer(void);
void fuzz_sync(void);

#endif
