# SPDX-License-Identifier: Apache-2.0
"""Arrays of climport's memory manager for Numba in kernels of NVIDIA's OpenCL, without a copy."""
import gc
import os
import sys
import time

import climport
import climport.opencl
import numpy
import pyopencl
from climport import _library
from numba import cuda

VMM = os.environ.get("CLIMPORT_NUMBA_VMM") == "1"
COUNT = 1 << 24
SOURCE = "kernel void increment(global int *a) { a[get_global_id(0)]++; }"
failures = 0


def expect(sentence, condition):
    global failures
    failures += not condition
    print("ok" if condition else "FAILED", sentence, flush=True)


def open_nvidia():
    for platform in pyopencl.get_platforms():
        if "NVIDIA" in platform.name:
            return pyopencl.Context(platform.get_devices()[:1])
    sys.exit("no OpenCL of NVIDIA's")


context = open_nvidia()
queue = pyopencl.CommandQueue(context)
program = pyopencl.Program(context, SOURCE).build()


def increment(buffer, count):
    begin = time.perf_counter()
    program.increment(queue, (count,), None, buffer)
    queue.finish()
    return (time.perf_counter() - begin) * 1e6


def check_host(title, array):
    array[:] = 41
    begin = time.perf_counter()
    buffer = climport.opencl.import_host(context, array)
    taken = (time.perf_counter() - begin) * 1e6
    kernel = increment(buffer, array.size)
    expect(f"{title}: a kernel's writes are in the array (import {taken:.0f} us, "
           f"kernel {kernel:.0f} us)", (array == 42).all())
    array[:] = 1
    increment(buffer, array.size)
    expect(f"{title}: a kernel sees the host's later writes", (array == 2).all())


def check_device():
    device = cuda.to_device(numpy.full(COUNT, 41, numpy.int32))
    cuda.synchronize()
    made = climport.export(device)
    expect(f"a device array is exported (offset {made.offset}, size {made.size})",
           made.size == device.nbytes)
    try:
        buffer = climport.opencl.import_dmabuf(context, made.fd, made.size, made.offset)
    except climport.opencl.Error as error:
        expect(f"a device array of {'VMM' if VMM else 'cuMemAlloc'} memory is refused: {error}",
               not VMM)
        return
    finally:
        os.close(made.fd)
    taken = increment(buffer, COUNT)
    expect(f"a kernel of OpenCL's writes to a device array ({taken:.0f} us)",
           (device.copy_to_host() == 42).all())


def check_unaligned():
    try:
        climport.opencl.import_host(context, numpy.zeros(COUNT + 1, numpy.int32)[1:])
    except climport.opencl.Error as error:
        expect(f"an array that is not aligned is refused: {error}", "512" in str(error))
    else:
        expect("an array that is not aligned is refused", False)


def check_lifetime():
    before = _library.stats().bytes_allocated
    for _ in range(20):
        buffer = climport.opencl.import_host(context,
                                             climport.opencl.zeros(context, 1 << 24, numpy.int32))
        increment(buffer, 1 << 24)
        del buffer
    gc.collect()
    kept = _library.stats().bytes_allocated - before
    expect(f"arrays of empty() go with their buffers ({kept} bytes are kept)", kept <= 1 << 27)


def check_reuse():
    manager = cuda.current_context().memory_manager
    expect("the manager is climport's", type(manager).__module__ == "climport.numba_emm")
    for round_ in range(300):
        device = cuda.to_device(numpy.full(1 << 18, round_, numpy.int32))
        if not (device.copy_to_host() == round_).all():
            expect("arrays keep their values", False)
            return
        del device
    expect("arrays keep their values", True)


check_reuse()
check_unaligned()
for _ in range(2):
    check_host("an array of empty()", climport.opencl.empty(context, COUNT, numpy.int32))
    check_host("a small array of empty()", climport.opencl.empty(context, 1000, numpy.int32))
    check_host("a pinned array", cuda.pinned_array(COUNT, numpy.int32))
    check_host("a mapped array", cuda.mapped_array(COUNT, numpy.int32))
    check_device()
check_lifetime()
print(cuda.current_context().get_memory_info())
sys.exit(failures != 0)
