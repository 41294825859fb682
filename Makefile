# SPDX-License-Identifier: Apache-2.0
# make demo   the main job: a camera's frames in OpenCL kernels, zero copy
# make check  all tests
# make check-debug-kernel   those of kmod/ on a kernel that finds faults, which it builds: 10 minutes
# make bench  speed, as ratios
JOBS := $(shell nproc)

.PHONY: all demo check check-debug-kernel bench deps clean FORCE

all: build/release

deps:
	@tools/install-deps

build/%: deps FORCE
	@mkdir -p $@
	@cmake --preset $* >$@/configure.log 2>&1 || { cat $@/configure.log; exit 1; }
	cmake --build $@ -j $(JOBS)

demo: build/release
	examples/run-demo build/release

bench: build/release
	bench/run build/release

check: check-dev check-asan check-tsan

check-debug-kernel: deps
	tools/install-deps debug-kernel
	cmake --preset dev -B build/debug-kernel -DCLIMPORT_DEBUG_KERNEL=ON >/dev/null
	cmake --build build/debug-kernel -j $(JOBS)
	tests/vm/kernel debug
	ctest --test-dir build/debug-kernel -L kmod --output-on-failure --no-tests=error

# One tree after the other: tests may use every core.
check-asan: check-dev
check-tsan: check-asan
check-%: build/%
	ctest --test-dir build/$* --output-on-failure --no-tests=error -j $(JOBS)

# Build trees are no intermediate files.
.SECONDARY:
FORCE:

clean:
	rm -rf build demo-in.png demo-out.png
