# SPDX-License-Identifier: Apache-2.0
"""Runs Numba's own tests with Numba's memory manager and with climport's, on the fake libcuda.

    numba_suite.py             compares the results test by test; exit status 0, 1, or 77
    numba_suite.py --short     likewise, in one process for each manager, and without the modules LONG
    numba_suite.py MODULE...   runs modules' tests with the manager of the environment; prints
                               "RESULT test outcome"

Many tests need a compiler of NVIDIA's or a function that the fake does not have: these fail with
both managers alike.  Tests that Numba skips with every manager but its own differ by design.
"""
import concurrent.futures
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, f"{sys.path[0]}/..")
import temporary

MANAGER = "climport.numba_emm"
MARK = "RESULT"
MODULES = [f"cudadrv.{name}" for name in (
    "test_emm_plugins", "test_cuda_memory", "test_array_attr", "test_events", "test_reset_device",
    "test_deallocations", "test_cuda_ndarray", "test_cuda_array_slicing", "test_host_alloc",
    "test_context_stack", "test_managed_alloc", "test_cuda_devicerecord", "test_pinned")]
MODULES += [f"cudapy.{name}" for name in ("test_array", "test_cuda_array_interface", "test_ipc")]

# Each test starts processes, which import Numba.
LONG = ["cudapy.test_ipc"]

# Why Numba itself skips tests with any manager but its own: skip_if_external_memmgr.
DESIGN = ("Deallocation specific to Numba memory management",
          "Ownership not relevant with external memmgr")


seconds = {}  # of each group of modules


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
        self._print(test, f"skipped: {reason}")

    def addExpectedFailure(self, test, err):
        self._print(test, "fails as expected")

    def addUnexpectedSuccess(self, test):
        self._print(test, "passes, not expected")


def run_modules(names):
    for name in names:
        tests = unittest.defaultTestLoader.loadTestsFromName(f"numba.cuda.tests.{name}")
        tests(Result())


def outcomes(names, manager):
    """The outcomes of the modules' tests, and the end of standard error."""
    begin = time.monotonic()  # time: figures
    environment = dict(os.environ, NUMBA_CUDA_MEMORY_MANAGER=manager)
    done = subprocess.run([sys.executable, __file__, *names], env=environment, capture_output=True,
                          text=True, timeout=600, check=False)
    lines = [line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith(MARK + " ")]
    found = {test: outcome for _, test, outcome in lines}
    if done.returncode or not found:
        found["the process"] = f"ends with status {done.returncode}: {done.stderr[-1000:]}"
    seconds[names] = seconds.get(names, 0) + time.monotonic() - begin  # time: figures
    return found


def compare(names, pair):
    """Prints a line, and returns how many results differ."""
    builtin, ours = (run.result() for run in pair)
    different = [test for test in sorted(set(builtin) | set(ours))
                 if builtin.get(test) != ours.get(test)]
    passed = sum(outcome == "passes" for outcome in builtin.values())
    print(f"{' '.join(names)}: {len(builtin)} tests, {passed} pass with Numba's manager, "
          f"{len(different)} with another result, {seconds[names]:.0f} s", flush=True)
    unexpected = 0
    for test in different:
        is_design = ours.get(test) in [f"skipped: {reason}" for reason in DESIGN]
        unexpected += not is_design
        print(f"    {test}: {builtin.get(test)}; with climport: {ours.get(test)}; "
              f"{'by design' if is_design else 'NOT BY DESIGN'}")
    if not passed:
        print(f"    no test passes: {builtin}")
    return unexpected + (not passed)


def run_groups(groups):
    """How many results differ that may not."""
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() // 2)) as threads:
        pairs = [(names, [threads.submit(outcomes, names, manager)
                          for manager in ("default", MANAGER)]) for names in groups]
        return sum(compare(names, pair) for names, pair in pairs)


def main(groups):
    try:
        import numba.cuda
    except ImportError as error:
        print(error)
        return 77
    print("numba", numba.__version__, flush=True)
    with temporary.folder() as folder:
        os.environ["TMPDIR"] = folder  # Numba's compiler leaves files
        return run_groups(groups) != 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--short"]:
        sys.exit(main([tuple(name for name in MODULES if name not in LONG)]))
    if sys.argv[1:]:
        run_modules(sys.argv[1:])
    else:
        sys.exit(main([(name,) for name in MODULES]))
