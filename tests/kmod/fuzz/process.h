/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of the fuzzer: threads make random calls until a given time; children and short
 * threads make a few calls and end.
 */
#ifndef TESTS_KMOD_FUZZ_PROCESS_H
#define TESTS_KMOD_FUZZ_PROCESS_H

#include <stdint.h>
#include <time.h>

/*
 * Makes random calls until @end and exits with 0.  The caller is a child of main(): whatever the
 * calls leave open is closed by the kernel when the child ends.
 */
_Noreturn void fuzz_run(uint64_t seed, time_t end);

/* The first argument, and the body, of a child that executes the program again. */
#define FUZZ_AFTER_EXEC "after-exec"
int fuzz_after_exec(const char *seed);

#endif
