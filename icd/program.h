/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the layer knows of the program.  cl_khr_image2d_from_buffer would be true of imports alone, so
 * most programs do not get the name, and a program that needs the name gets a sentence when the
 * program exits (CLIMPORT_LOG=error).  All functions may be called from any thread.
 */
#ifndef ICD_PROGRAM_H
#define ICD_PROGRAM_H

#include <stdbool.h>

/* Whether the program, by its name, is known to make 2D images of no buffers but imports. */
bool program_makes_images_of_imports(void);

/* The program has asked for the extension's function. */
void program_has_function(void);

/* The program has created a context: a program without a context imports nothing in any case. */
void program_has_context(void);

/* The program imports, or asks the layer itself what devices import. */
void program_needs_no_hint(void);

/* The program reads names of extensions, without the name that would be true of imports. */
void program_misses_images(void);

#endif /* ICD_PROGRAM_H */
