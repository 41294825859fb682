# SPDX-License-Identifier: Apache-2.0
"""Arrays of climport's memory manager in another process, by CUDA's IPC handles."""
import multiprocessing
import sys

import numpy
from numba import cuda


def read_and_write(handle, results):
    with handle as array:
        results.put(int(array.copy_to_host().sum()))
        array.copy_to_device(numpy.full(array.shape, 7, array.dtype))
        cuda.synchronize()


def main():
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    failures = 0
    cuda.to_device(numpy.zeros(10))
    for count in (1000, 1 << 18, 1 << 22):
        array = cuda.to_device(numpy.ones(count, numpy.int32))
        part = array[count // 2:]
        process = spawn.Process(target=read_and_write, args=(part.get_ipc_handle(), results))
        process.start()
        total = results.get(timeout=60)
        process.join()
        values = array.copy_to_host()
        is_right = (total == count // 2 and (values[:count // 2] == 1).all()
                    and (values[count // 2:] == 7).all())
        failures += not is_right
        print("ok" if is_right else "FAILED", f"another process reads and writes {count // 2} "
              "elements, and no other", flush=True)
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
