# SPDX-License-Identifier: Apache-2.0
# For armhf: cmake --toolchain cmake/arm-linux-gnueabihf.cmake
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(TRIPLET arm-linux-gnueabihf)
set(FETCH_SYSROOT ./userland bookworm-armhf libc6-dev linux-libc-dev ocl-icd-opencl-dev opencl-c-headers libdrm-dev libpng-dev
	libfabric-dev)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
