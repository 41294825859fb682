# SPDX-License-Identifier: Apache-2.0
"""Allocators of PyTorch and CuPy over pools of libclimport's.

    torch.cuda.memory.change_current_allocator(climport.allocators.torch_allocator())
    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(climport.allocators.cupy_malloc()).malloc)

Memory is climport_alloc(CLIMPORT_DEVICE)'s: climport.export() makes dma-bufs of such tensors and
arrays, and climport.opencl.import_dmabuf() imports the dma-bufs into NVIDIA's OpenCL with no copy.
"""
import ctypes
from typing import Any, Callable

from . import _library

__all__ = ["cupy_malloc", "torch_allocator"]

CUDA_OUT_OF_MEMORY = 2


def _address(name: str) -> int:
    function = getattr(_library.library, name)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def torch_allocator() -> Any:
    """A torch.cuda.memory.CUDAPluggableAllocator, for change_current_allocator() or MemPool.

    Memory is reused in the same stream at once.  Memory for which record_stream() was called is
    reused after all work of the device.  PyTorch does not look for NULL: a tensor for which no memory
    is left has the address 0, and kernels on the tensor fail.

    Not for programs that allocate while a stream captures a CUDA graph: memory that was freed during
    the capture would go to other tensors, and each replay of the graph would write to this memory.  So
    the allocator gives no memory then, writes the reason to standard error, and makes the capture fail:
    PyTorch raises CUDA's error.
    """
    import torch  # pylint: disable=import-outside-toplevel

    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        _library.library._name, "climport_torch_alloc", "climport_torch_free")
    inner = allocator.allocator()
    if hasattr(inner, "set_record_stream_fn"):
        inner.set_record_stream_fn(_address("climport_torch_record_stream"))
    return allocator


def cupy_malloc() -> "Callable[[int], Any]":
    """The malloc of a cupy.cuda.CFunctionAllocator, for cupy.cuda.MemoryPool or set_allocator().

    CuPy names no stream, so memory is reused after all work of the device: put CuPy's MemoryPool on
    top, which reuses memory in the order of streams.

    The function raises CuPy's CUDARuntimeError if no memory is left, as cudaMalloc() does.
    """
    import cupy  # pylint: disable=import-outside-toplevel

    allocator = cupy.cuda.CFunctionAllocator(0, _address("climport_cupy_alloc"),
                                             _address("climport_cupy_free"), _library.library)

    def malloc(size: int) -> Any:
        memory = allocator.malloc(size)
        if size and not memory.ptr:
            raise cupy.cuda.runtime.CUDARuntimeError(CUDA_OUT_OF_MEMORY)
        return memory

    return malloc
