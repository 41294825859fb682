# SPDX-License-Identifier: Apache-2.0
"""What an allocation and its free cost: the memory manager of the environment, and CuPy's pool."""
import statistics
import time
import weakref

from numba import cuda
from numba.cuda.cudadrv.driver import MemoryPointer

try:
    import cupy
except ImportError:
    cupy = None

context = cuda.current_context()


def measure(alloc, rounds):
    samples = []
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(rounds):
            memory = alloc()
            del memory
        samples.append((time.perf_counter() - begin) / rounds * 1e6)
    return statistics.median(samples)


print(type(context.memory_manager).__name__)
proxy = weakref.proxy(context)
pointer = context.memalloc(1).device_pointer
print(f"Numba's MemoryPointer without memory "
      f"{measure(lambda: MemoryPointer(proxy, pointer, 1, finalizer=time.time), 300):8.2f} us")
for size in (1 << 10, 1 << 16, 1 << 20, 1 << 22, 1 << 28):
    columns = [f"memalloc {measure(lambda: context.memalloc(size), 300):8.2f} us",
               f"device_array {measure(lambda: cuda.device_array(size, 'u1'), 300):8.2f} us"]
    if cupy:
        columns.append(f"CuPy's pool {measure(lambda: cupy.cuda.alloc(size), 300):8.2f} us")
        columns.append(f"cupy.empty {measure(lambda: cupy.empty(size, 'u1'), 300):8.2f} us")
    print(f"{size:10} bytes:", ", ".join(columns), flush=True)
