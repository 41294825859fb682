/* SPDX-License-Identifier: Apache-2.0 */
/* A layer below climport's layer (below.c), and the headers of OpenCL that the mutants need. */
#ifndef TESTS_MUTANTS_BELOW_H
#define TESTS_MUTANTS_BELOW_H

#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_icd.h>
#include <CL/cl_ext.h>

/* The driver's functions. */
extern struct _cl_icd_dispatch mutant_driver;

#endif
