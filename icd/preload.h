/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's preloaded libraries (LD_PRELOAD), as a probe process gets them.
 *
 * A preloaded library may be a part of the driver, or change what the driver does.  So a probe
 * process has the libraries that the program was started with (start.h).  The runtimes of sanitizers and
 * of valgrind's tools are left out: they watch a program, they may not start behind another program,
 * and they would end a probe process for faults of the driver that the program survives.
 */
#ifndef ICD_PRELOAD_H
#define ICD_PRELOAD_H

/*
 * The value of LD_PRELOAD for a probe process: "" for none.  The caller frees the text.  NULL: no
 * memory.
 */
char *preload_for_probe(void);

/*
 * The same libraries, with the size and the time of each file, which the caller frees.  A library that
 * is named without a folder is known by the name alone.  NULL: no memory.
 */
char *preload_describe(void);

#endif /* ICD_PRELOAD_H */
