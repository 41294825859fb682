# SPDX-License-Identifier: Apache-2.0
"""The allocators of PyTorch, CuPy and cuda.core over libclimport, on an NVIDIA GPU.

    python_allocators.py torch|cupy|cuda_core [default]
"""
import os
import statistics
import sys
import time

import climport
import climport.opencl
import numpy
import pyopencl

PACKAGE = sys.argv[1]
IS_OURS = "default" not in sys.argv[2:]
SOURCE = "kernel void increment(global int *a) { a[get_global_id(0)]++; }"
SIZES = (1 << 10, 1 << 20, 1 << 22, 1 << 28)
failures = 0


def expect(sentence, condition):
    global failures
    failures += not condition
    print("ok" if condition else "FAILED", sentence, flush=True)


def measure(alloc, rounds=300):
    samples = []
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(rounds):
            memory = alloc()
            del memory
        samples.append((time.perf_counter() - begin) / rounds * 1e6)
    return statistics.median(samples)


def print_times(alloc):
    print(f"{PACKAGE}, {'climport' if IS_OURS else 'its own allocator'}:",
          ", ".join(f"{size} bytes {measure(lambda: alloc(size)):.2f} us" for size in SIZES))


def increment_by_opencl(array, count):
    """A kernel of OpenCL's over the memory of @array."""
    platform = [p for p in pyopencl.get_platforms() if "NVIDIA" in p.name][0]
    context = pyopencl.Context(platform.get_devices()[:1])
    queue = pyopencl.CommandQueue(context)
    program = pyopencl.Program(context, SOURCE).build()
    made = climport.export(array)
    try:
        buffer = climport.opencl.import_dmabuf(context, made.fd, made.size, made.offset)
    finally:
        os.close(made.fd)
    program.increment(queue, (count,), None, buffer)
    queue.finish()


class DLPackAlone:
    """A tensor without its other interfaces."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **arguments):
        return self.tensor.__dlpack__(**arguments)


def check_torch():
    import torch
    if IS_OURS:
        from climport.allocators import torch_allocator
        torch.cuda.memory.change_current_allocator(torch_allocator())
    print_times(lambda size: torch.empty(size, dtype=torch.uint8, device="cuda"))
    if not IS_OURS:
        return
    side = torch.cuda.Stream()
    wrong = 0
    for i in range(200):
        tensor = torch.full((1 << 20,), i, dtype=torch.int32, device="cuda")
        with torch.cuda.stream(side):
            side.wait_stream(torch.cuda.default_stream())
            double = tensor * 2
            tensor.record_stream(side)
        del tensor
        other = torch.full((1 << 20,), -1, dtype=torch.int32, device="cuda")
        side.synchronize()
        wrong += not bool((double == 2 * i).all()) or not bool((other == -1).all())
    expect("tensors of two streams keep their values in 200 rounds", not wrong)
    tensor = torch.full((1 << 20,), 41, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    increment_by_opencl(tensor, 1 << 20)
    expect("a kernel of OpenCL's writes to a tensor", bool((tensor == 42).all()))
    increment_by_opencl(DLPackAlone(tensor), 1 << 20)
    expect("a kernel of OpenCL's writes to a tensor, by DLPack", bool((tensor == 43).all()))


def check_cupy():
    import cupy
    if IS_OURS:
        from climport.allocators import cupy_malloc
        malloc = cupy_malloc()
        pool = cupy.cuda.MemoryPool(malloc)
        cupy.cuda.set_allocator(pool.malloc)
    print_times(lambda size: cupy.empty(size, "u1"))
    if not IS_OURS:
        return
    wrong = sum(not bool((cupy.full(1 << 20, i) == i).all()) for i in range(200))
    expect("arrays keep their values in 200 rounds", not wrong)
    array = cupy.full(1 << 20, 41, "i4")
    cupy.cuda.runtime.deviceSynchronize()
    increment_by_opencl(array, 1 << 20)
    expect("a kernel of OpenCL's writes to an array", bool((array == 42).all()))
    try:
        cupy.empty(1 << 45, "u1")
    except MemoryError as error:
        expect(f"an array that is too large raises MemoryError: {error}", True)
    del array
    pool.free_all_blocks()
    cupy.cuda.set_allocator(malloc)
    wrong = sum(not bool((cupy.full(1 << 20, i) == i).all()) for i in range(200))
    expect("arrays without CuPy's pool keep their values in 200 rounds", not wrong)
    cupy.cuda.set_allocator(None)


def check_cuda_core():
    from cuda.core import Device
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    if IS_OURS:
        from climport.cuda_core import MemoryResource
        resource = MemoryResource(0)
    else:
        resource = device.memory_resource

    def alloc(size):
        resource.allocate(size, stream=stream).close()

    print_times(alloc)
    if not IS_OURS:
        return
    device.memory_resource = resource
    buffer = device.allocate(1 << 22, stream=stream)
    expect("a buffer is of the resource", buffer.memory_resource is resource and buffer.size == 1 << 22)
    made = climport.export(buffer)
    expect("a buffer is exported by DLPack", made.size == 1 << 22)
    os.close(made.fd)
    address = int(buffer.handle)
    buffer.close()
    again = resource.allocate(1 << 22, stream=stream)
    expect("the same stream gets the memory again", int(again.handle) == address)
    again.close()


{"torch": check_torch, "cupy": check_cupy, "cuda_core": check_cuda_core}[PACKAGE]()
sys.exit(failures != 0)
