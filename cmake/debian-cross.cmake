# SPDX-License-Identifier: Apache-2.0
# Debian's cross compiler for TRIPLET.  Headers and libraries are those of CMAKE_SYSROOT, by default the folder of
# another architecture's packages that the command in FETCH_SYSROOT makes and prints.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_LIBRARY_ARCHITECTURE ${TRIPLET})
set(CMAKE_C_COMPILER ${TRIPLET}-gcc)

# Files of the kind that CMake compiles to find out what the compiler can do need the folder as well.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CMAKE_SYSROOT)
if(NOT CMAKE_SYSROOT)
	execute_process(COMMAND ${FETCH_SYSROOT} WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/../tests/vm
		OUTPUT_VARIABLE CMAKE_SYSROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
	${CMAKE_SYSROOT}/usr/lib/${TRIPLET}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
