# SPDX-License-Identifier: Apache-2.0
# Run by ctest.  ctest starts the tests with the highest cost first, so that no long test is left at
# the end.  A new build tree has no costs of earlier runs: seconds.txt has those of all its tests that
# take 5 seconds or more on two processors.
#
# `make check` starts two tests for each processor, as half of the tests wait.  A test that keeps a
# processor busy counts as two.  kmod.build and kmod.dkms do not: on a new machine they first wait for
# downloads.
#
# The limit of a test (TIMEOUT, in the CMakeLists.txt of its folder) is at least ten times its
# seconds: on a busy machine a test may take that long.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/seconds.txt lines)
foreach(line IN LISTS lines)
	separate_arguments(line)
	list(GET line 0 seconds)
	list(GET line 1 test)
	set_tests_properties(${test} PROPERTIES COST ${seconds})
	if(test MATCHES "^(kmod|vm|order|chaos|programs|python)[.-]"
			AND NOT test MATCHES "^kmod[.](build|dkms)")
		set_tests_properties(${test} PROPERTIES PROCESSORS 2)
	endif()
endforeach()
