# SPDX-License-Identifier: Apache-2.0
"""climport: existing memory as OpenCL buffers and as dma-bufs, without a copy.

climport.opencl imports arrays and dma-bufs into OpenCL, climport.numba_emm is a memory manager for
Numba, and climport.export() makes a dma-buf of an array.  See docs/python.md of climport.
"""
from typing import Any, NamedTuple

from . import _arrays, _library

__all__ = ["Export", "__version__", "export", "version"]

__version__ = "0.2.0.dev0"


class Export(NamedTuple):
    """An array in a dma-buf: @size bytes from byte @offset on.  The caller closes @fd."""
    fd: int
    offset: int
    size: int


def version() -> "tuple[int, int, int]":
    """The version of libclimport."""
    number = _library.library.climport_version()
    return number >> 22, number >> 12 & 0x3ff, number & 0xfff


def export(array: Any) -> Export:
    """The memory of an array as a dma-buf: (fd, offset, size).

    @array has __cuda_array_interface__ (Numba, CuPy, PyTorch on a GPU), __array_interface__ (NumPy)
    or __dlpack__, on the host or on a GPU of NVIDIA's, and is contiguous.  The dma-buf has whole pages, so a receiver of the descriptor also
    sees the neighbours of a small array.  A NumPy array that is not writable gives a dma-buf that is
    not writable.

    The caller closes fd.  The pages live until the last user of the dma-buf is gone, also if the
    array is freed before.

    Raises OSError with the sentence of the cause: climport_export_dmabuf() has the list.  TypeError
    and ValueError: no such array, an empty array, an array that is not contiguous.
    """
    memory, keep = _arrays.span(array)
    flags = _library.READ_ONLY if memory.read_only else 0
    made = _library.export_dmabuf(memory.address, memory.size, flags)
    del keep
    return Export(made.fd, made.offset, made.size)
