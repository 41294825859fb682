/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libOpenCL.so for programs that look clImportMemoryARM up in OpenCL's library: docs/libclimport.md.
 * The library has no function; dlsym() finds those of the two libraries that this library needs.
 */
