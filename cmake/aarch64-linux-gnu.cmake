# SPDX-License-Identifier: Apache-2.0
# For arm64: cmake --preset arm64.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(TRIPLET aarch64-linux-gnu)
set(FETCH_SYSROOT ./arm64)
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
