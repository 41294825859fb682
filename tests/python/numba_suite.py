# SPDX-License-Identifier: Apache-2.0
"""Runs Numba's own tests with Numba's memory manager and with climport's, on the fake libcuda.

    numba_suite.py             compares the results test by test; exit status 0, 1, or 77
    numba_suite.py --short     without the modules of LONG
    numba_suite.py MODULE      runs a module's tests with the manager of the environment; prints
                               "RESULT test outcome"

Many tests need a compiler of NVIDIA's or a function that the fake does not have: these fail with
both managers alike.  DESIGN lists the tests whose results differ by design.
"""
import concurrent.futures
import os
import subprocess
import sys
import time
import unittest

MANAGER = "climport.numba_emm"
MARK = "RESULT"
MODULES = [f"cudadrv.{name}" for name in (
    "test_emm_plugins", "test_cuda_memory", "test_array_attr", "test_events", "test_reset_device",
    "test_deallocations", "test_cuda_ndarray", "test_cuda_array_slicing", "test_host_alloc",
    "test_context_stack", "test_managed_alloc", "test_cuda_devicerecord", "test_pinned")]
MODULES += [f"cudapy.{name}" for name in ("test_array", "test_cuda_array_interface", "test_ipc")]

# Numba's own condition: skip_if_external_memmgr.
QUEUE = "the test is of the pending frees of Numba's manager; Numba skips the test"
DESIGN = {name: QUEUE for name in (
    "cudadrv.test_deallocations.TestDeallocation.test_max_pending_bytes",
    "cudadrv.test_deallocations.TestDeallocation.test_max_pending_count",
    "cudadrv.test_deallocations.TestDeferCleanup.test_basic",
    "cudadrv.test_deallocations.TestDeferCleanup.test_exception",
    "cudadrv.test_deallocations.TestDeferCleanup.test_nested",
    "cudapy.test_cuda_array_interface.TestCudaArrayInterface.test_ownership")}


seconds = {}  # of each module


class Result(unittest.TestResult):
    """Prints a line for each test."""

    def _print(self, test, outcome):
        print(MARK, test.id().partition("cuda.tests.")[2] or test.id(), outcome, flush=True)

    def addSuccess(self, test):
        self._print(test, "passes")

    def addError(self, test, err):
        # The loader tells of a module that cannot be imported by an error of many lines.
        text = str(err[1]).split("\n") if issubclass(err[0], ImportError) else []
        self._print(test, " ".join([f"error {err[0].__name__}"] + [line.strip() for line in text]))

    def addFailure(self, test, err):
        self._print(test, "fails")

    def addSkip(self, test, reason):
        self._print(test, "skipped")

    def addExpectedFailure(self, test, err):
        self._print(test, "fails as expected")

    def addUnexpectedSuccess(self, test):
        self._print(test, "passes, not expected")


def run_module(name):
    tests = unittest.defaultTestLoader.loadTestsFromName(f"numba.cuda.tests.{name}")
    tests(Result())


def outcomes(name, manager):
    """The outcomes of a module's tests, and the end of standard error."""
    begin = time.monotonic()
    environment = dict(os.environ, NUMBA_CUDA_MEMORY_MANAGER=manager)
    done = subprocess.run([sys.executable, __file__, name], env=environment, capture_output=True,
                          text=True, timeout=600, check=False)
    lines = [line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith(MARK + " ")]
    found = {test: outcome for _, test, outcome in lines}
    if done.returncode or not found:
        found["the process"] = f"ends with status {done.returncode}: {done.stderr[-1000:]}"
    seconds[name] = seconds.get(name, 0) + time.monotonic() - begin
    return found


def compare(name, pair):
    """Prints a line, and returns how many results differ."""
    builtin, ours = (run.result() for run in pair)
    different = [test for test in sorted(set(builtin) | set(ours))
                 if builtin.get(test) != ours.get(test)]
    passed = sum(outcome == "passes" for outcome in builtin.values())
    print(f"{name}: {len(builtin)} tests, {passed} pass with Numba's manager, "
          f"{len(different)} with another result, {seconds[name]:.0f} s", flush=True)
    unexpected = 0
    for test in different:
        reason = DESIGN.get(test)
        unexpected += reason is None
        print(f"    {test}: {builtin.get(test)}; with climport: {ours.get(test)}; "
              f"{reason or 'NOT BY DESIGN'}")
    if not passed:
        print(f"    no test passes: {builtin}")
    return unexpected + (not passed)


def main():
    try:
        import numba.cuda
    except ImportError as error:
        print(error)
        return 77
    print("numba", numba.__version__, flush=True)
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() // 2)) as threads:
        pairs = [(name, [threads.submit(outcomes, name, manager)
                         for manager in ("default", MANAGER)]) for name in MODULES]
        wrong = sum(compare(name, pair) for name, pair in pairs)
    return wrong != 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_module(sys.argv[1])
    else:
        sys.exit(main())
