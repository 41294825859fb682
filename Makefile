# SPDX-License-Identifier: Apache-2.0
# make demo   the main job: a camera's frames in OpenCL kernels, zero copy
# make check  all tests but the long ones: about 19 minutes on two cores
# make check-debug-kernel   those of kmod/ on a kernel that finds faults, which it builds: 10 minutes;
#             before a change of kmod/ is done
# make check-long   what takes hours: whole programs, every driver, three kernels, a bad driver at
#             every call, loops of 1,000 on one processor and under load, the tests alone and in 12
#             orders, the quick suites beside ten busy processes, DKMS, a board's processor,
#             kmod/ on the debug kernel; installs 400 MB of programs, and pyopencl from PyPI under build/
# make check-arm64   cross build, and its tests on guests that are arm64 machines, and make on one: hours
# make check-ffmpeg   FFmpeg from Debian's source package, unchanged, with the commands of docs/ffmpeg.md,
#             which it builds: 5 minutes
# make check-rdma   the net plugin over this machine's RDMA adapters, with GPU memory if there is a
#             GPU: a minute; says what is missing
# make conform   the conformance suite alone, for this machine or with CC= for a board: docs/conform.md
# make check-drivers   every OpenCL driver that needs no hardware, with each loader, on this machine and in
#             the guest, and docs/measured/drivers.md: hours, and 5 GB below build/dev/drivers
# make lint   the linters alone, which make check runs too: a minute
# make coverage   the lines and branches that the tests run, by folder: docs/measured/coverage.txt
# make mutants   wrong drivers, and whether `climport conform` notices: docs/measured/mutants.txt
# make packages   Debian's packages, in build/packages, without the tests of debian/rules; with ARCH=arm64
#             those for another processor, in build/packages-arm64
# make wheel   the Python wheel with binaries, in build/wheel
# make bench  speed, as ratios, and instructions of calls
# make measure-house   how large the product is, its include cycles, and the functions that a call runs:
#             docs/measured/house.txt
# make measure-worth   what zero copy is worth to a newcomer, on a machine that does nothing else: figures and
#             pictures of README.md and docs/drivers.md, and docs/measured/first-hour.txt; 10 minutes
JOBS := $(shell nproc)
# Half of the tests wait: tests/schedule/schedule.cmake.
TESTS := $(shell expr 2 \* $(JOBS))

MAKEFLAGS += --no-print-directory

# Kernel developers export the variable, and mean another program.
ifeq ($(origin ARCH),environment)
ARCH :=
unexport ARCH
endif

.PHONY: all demo packages wheel dkms conform check check-long check-debug-kernel check-arm64 check-drivers check-ffmpeg check-rdma lint coverage mutants bench measure-house measure-worth deps clean FORCE

all: build/release
	@echo
	@echo "Built.  What your OpenCL devices import, and how:"
	@echo "    build/release/tools/climport info"

# What the goals need, for a machine that will go offline.
deps:
	@tools/install-deps check

# The goal for which tools/install-deps installs packages; what cmake is told; what is built, else all.
NEEDS := make
CONFIGURE :=
TARGETS :=
examples := -DCLIMPORT_EXAMPLES=ON

build/%: FORCE
	@tools/install-deps $(NEEDS)
	@mkdir -p $@
	@cmake --preset $* $(CONFIGURE) >$@/configure.log 2>&1 || { cat $@/configure.log; exit 1; }
	cmake --build $@ -j $(JOBS) $(TARGETS)

packages:
	@tools/install-deps packages$(ARCH:%=-cross)
	tools/packages build/packages$(ARCH:%=-%) $(ARCH)

wheel:
	@tools/install-deps wheel
	tools/wheel build/wheel

demo: NEEDS := demo
demo: CONFIGURE := $(examples)
demo: TARGETS := --target CLImportMemoryLayer climport-probe host_import demo edge_compile
demo: build/release
	examples/run-demo build/release

# The sources of the kernel modules to $(DESTDIR)/usr/src.
dkms:
	tools/dkms $(DESTDIR)

conform:
	$(MAKE) -C tests/spec OUT=$(CURDIR)/build/conform

bench: NEEDS := bench
bench: CONFIGURE := $(examples)
bench: build/release
	bench/run build/release

# Without inlining, so that each call is one.
measure-house:
	@tools/install-deps measure-house
	cmake --preset release -B build/walk -DCMAKE_BUILD_TYPE=Debug $(examples) >/dev/null
	cmake --build build/walk -j $(JOBS) --target CLImportMemoryLayer climport-bench
	bench/house build/walk >build/walk/house.txt
	cp build/walk/house.txt docs/measured/

# Takes root, and a machine that does nothing else.
measure-worth: NEEDS := measure-worth
measure-worth: build/release
	tests/first-hour >build/first-hour.txt || { cat build/first-hour.txt; exit 1; }
	build/release/tools/climport bench --platform Portable --json build/bench-pocl-3.1.json
	cp build/first-hour.txt build/bench-pocl-3.1.json docs/measured/
	bench/plot docs/measured/bench-pocl-3.1.json docs/measured
	docs/measured/figures

check-% mutants: NEEDS := check

check: NEEDS := check
check: check-dev check-asan check-tsan

check-debug-kernel:
	@tools/install-deps check-debug-kernel
	cmake --preset dev -B build/debug-kernel -DCLIMPORT_DEBUG_KERNEL=ON >/dev/null
	cmake --build build/debug-kernel -j $(JOBS)
	tests/vm/kernel debug
	ctest --test-dir build/debug-kernel -L kmod --output-on-failure --no-tests=error

# A guest has two processors.
check-arm64: NEEDS := check-arm64
check-arm64: build/arm64
	ctest --test-dir build/arm64 -L '^arm64$$' --output-on-failure --no-tests=error

# One tree after the other: tests may use every core.
check-asan: check-dev
check-tsan: check-asan
check-%: build/%
	ctest --test-dir build/$* --output-on-failure --no-tests=error -j $(TESTS)

# The tests of the configuration "long"; the rest is make check's.
check-long: NEEDS := check-long
check-long: build/dev
	ctest --test-dir build/dev -C long -L long --output-on-failure --no-tests=error
	$(MAKE) check-debug-kernel

# Results of drivers that cannot be had stay as they were.
DRIVERS := tests/drivers/run build/dev --keep docs/measured/drivers.json
check-drivers: build/dev
	$(DRIVERS)
	$(DRIVERS) --guest
	$(DRIVERS) --bench
	tests/drivers/report docs/measured/drivers.json
	docs/measured/figures

check-ffmpeg: build/dev
	ctest --test-dir build/dev -C long -L ffmpeg --output-on-failure --no-tests=error

# The release build, as a user has it.  The plugin's lines tell what the adapters take.
check-rdma: NEEDS := check-rdma
check-rdma: CONFIGURE := $(examples)
check-rdma: build/release
	tests/nccl/check-rdma build/release || [ $$? -eq 77 ]

# Linters read compile_commands.json, and nothing that is built.
lint:
	@tools/install-deps lint
	cmake --preset dev >/dev/null
	ctest --test-dir build/dev -C long -L lint --output-on-failure --no-tests=error -j $(JOBS)

# Tests in a guest write no counts; those of the other labels left out run what others run as well.
# What is left of files that are gone would be counted, so the build is a new one.
coverage:
	@tools/install-deps coverage
	rm -rf build/coverage
	cmake --preset coverage >/dev/null
	cmake --build build/coverage -j $(JOBS)
	ctest --test-dir build/coverage -LE 'vm|kmod|order|programs|drivers|install|docs|lint' \
		--output-on-failure --no-tests=error -j $(JOBS)
	tests/coverage build/coverage >build/coverage/coverage.txt || \
		{ cat build/coverage/coverage.txt; exit 1; }
	cp build/coverage/coverage.txt docs/measured/

# The test that killed a mutant the last time runs first.
mutants: build/dev
	tests/mutants/run build/dev --before docs/measured/mutants.txt >build/dev/mutants.txt; \
		status=$$?; cp build/dev/mutants.txt docs/measured/; exit $$status

# Build trees are no intermediate files.
.SECONDARY:
FORCE:

clean:
	rm -rf build demo-in.png demo-out.png
