# SPDX-License-Identifier: Apache-2.0
# For riscv64: cmake --toolchain cmake/riscv64-linux-gnu.cmake
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(TRIPLET riscv64-linux-gnu)
set(FETCH_SYSROOT ./userland trixie-riscv64 libc6-dev linux-libc-dev ocl-icd-opencl-dev opencl-c-headers libdrm-dev
	libpng-dev libfabric-dev)
# gcc 12 calls libatomic for words of one byte.
set(CMAKE_C_STANDARD_LIBRARIES_INIT -latomic)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
