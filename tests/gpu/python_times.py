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


ROUNDS = 300
POOL = "CuPy's pool"


def time_of(alloc):
    begin = time.perf_counter()
    for _ in range(ROUNDS):
        memory = alloc()
        del memory
    return (time.perf_counter() - begin) / ROUNDS * 1e6


def measure(**allocators):
    """Medians.  The allocators take turns, so that a change of the processor's speed is everybody's."""
    samples = {name: [] for name in allocators}
    for _ in range(15):
        for name, alloc in allocators.items():
            samples[name].append(time_of(alloc))
    return {name: statistics.median(times) for name, times in samples.items()}


print(type(context.memory_manager).__name__)
proxy = weakref.proxy(context)
pointer = context.memalloc(1).device_pointer
alone = measure(pointer=lambda: MemoryPointer(proxy, pointer, 1, finalizer=time.time))["pointer"]
print(f"Numba's MemoryPointer without memory {alone:8.2f} us")
for size in (1 << 10, 1 << 16, 1 << 20, 1 << 22, 1 << 28):
    allocators = {"memalloc": lambda: context.memalloc(size),
                  "device_array": lambda: cuda.device_array(size, "u1")}
    if cupy:
        allocators[POOL] = lambda: cupy.cuda.alloc(size)
        allocators["cupy.empty"] = lambda: cupy.empty(size, "u1")
    times = measure(**allocators)
    columns = [f"{name} {value:8.2f} us" for name, value in times.items()]
    if cupy:
        columns.append(f"memalloc / CuPy's pool {times['memalloc'] / times[POOL]:.2f}")
    print(f"{size:10} bytes:", ", ".join(columns), flush=True)
