# SPDX-License-Identifier: Apache-2.0
"""Existing memory as buffers of PyOpenCL, without a copy.

    context = pyopencl.create_some_context()
    array = climport.opencl.zeros(context, 1 << 20, numpy.int32)
    buffer = climport.opencl.import_host(context, array)

The context is of a program that began with climport's layer (`climport run -- python3 ...`), or of
a driver that has cl_arm_import_memory itself.

An imported array lives as long as the buffer, not as the Python object: a command that runs may keep
the buffer of a Python object that is gone.  So the array is released by the buffer's destructor
callback.  The callback comes in any thread of the driver's, perhaps
below a lock of the driver's, and a thread that holds Python's lock may wait for the driver's: a
callback that waits for Python's lock can hang the program.  So the callback is a C function that
sets a mark (climport_mark_destroyed), and Python looks at the marks after the death of each such
Python object, at each import, and when Python's garbage collector runs.  (The buffers of PyOpenCL
2026 have no weak references, so nothing tells of the death of the Python object.)
"""
import atexit
import contextlib
import ctypes
import gc
import math
import os
import re
import weakref
from ctypes import c_int32, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, Optional, cast

import numpy
import pyopencl

from . import _arrays, _library

__all__ = ["Error", "empty", "import_dmabuf", "import_host", "zeros"]


class Error(RuntimeError):
    """A refused import.  The text is climport's sentence; @code is the error code of OpenCL."""

    def __init__(self, sentence: str, code: int):
        super().__init__(sentence, code)  # what pickle passes to the constructor
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


def _loaded_loader() -> str:
    """The file of PyOpenCL's loader; PyPI's wheel has a loader of its own, of another name."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").split(maxsplit=5)[5:]
            if path and re.match(r"libOpenCL[-.]", os.path.basename(path[0])):
                return path[0]
    return "libOpenCL.so.1"


def _open_loader() -> ctypes.CDLL:
    """libclimport asks the dynamic linker for functions of the program's loader, so a loader of
    another name than the system's has to be visible there."""
    path = _loaded_loader()
    mode = ctypes.DEFAULT_MODE
    if not os.path.basename(path).startswith("libOpenCL.so"):
        mode = ctypes.RTLD_GLOBAL
    loader = ctypes.CDLL(path, mode)
    loader.clSetMemObjectDestructorCallback.argtypes = [c_void_p, c_void_p, c_void_p]
    loader.clReleaseMemObject.argtypes = [c_void_p]
    return loader


_loader = _open_loader()
_mark_destroyed = ctypes.cast(_library.library.climport_mark_destroyed, c_void_p)


class _Kept:
    """An object that a buffer needs, and the mark of the buffer's destructor."""

    def __init__(self, thing: Any):
        self.thing = thing
        self.mark = c_uint32(0)


# The buffers' own references.  At the end of the interpreter Python clears this dictionary, and the
# references of _hold() keep memory and marks for buffers that are still alive.
_kept: Dict[int, _Kept] = {}
_reference = ctypes.pythonapi.Py_IncRef
_reference.argtypes = [ctypes.py_object]
_reference.restype = None
_unreference = ctypes.pythonapi.Py_DecRef
_unreference.argtypes = [ctypes.py_object]
_unreference.restype = None


def _hold(thing: Any) -> _Kept:
    kept = _Kept(thing)
    _kept[id(kept)] = kept
    _reference(kept)
    return kept


def _drop(kept: _Kept) -> None:
    if _kept.pop(id(kept), None) is not None:
        _unreference(kept)


def _sweep() -> None:
    """Releases what destroyed buffers kept."""
    for kept in list(_kept.values()):
        if kept.mark.value:
            _drop(kept)


class _Sweeper:
    """A pending call is a C function, which returns 0 or an exception.  PyObject_IsTrue() of this object
    is such a function, also when an interrupt comes before the first line of __bool__()."""

    def __bool__(self) -> bool:
        _sweep()
        return False


_sweeper = _Sweeper()
_is_true = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, c_void_p)
_add_pending_call = ctypes.pythonapi.Py_AddPendingCall
_add_pending_call.argtypes = [c_void_p, ctypes.py_object]


def _sweep_soon() -> None:
    """A finalizer of a Python object runs before PyOpenCL releases the buffer."""
    _add_pending_call(_is_true, _sweeper)


def _watch(buffer: pyopencl.Buffer) -> None:
    weakref.finalize(buffer, _sweep_soon).atexit = False


def _sweep_after_collection(phase: str, info: Any) -> None:
    if phase == "stop" and info["generation"]:
        _sweep()


gc.callbacks.append(_sweep_after_collection)
atexit.register(gc.callbacks.remove, _sweep_after_collection)


def _keep_with(memory: int, thing: Any) -> None:
    """@thing lives until the memory object is destroyed."""
    kept = _hold(thing)
    error = _loader.clSetMemObjectDestructorCallback(memory, _mark_destroyed,
                                                     ctypes.addressof(kept.mark))
    if error:
        _drop(kept)
        raise Error(f"clSetMemObjectDestructorCallback failed: OpenCL error {error}", error)


def _buffer(memory: Optional[int], error: int, thing: Any) -> pyopencl.Buffer:
    """The buffer has a reference of its own.  So the reference of the import is released once, at
    whatever moment an interrupt comes."""
    if not memory:
        raise Error(_library.last_error(), error)
    try:
        if thing is not None:
            _keep_with(memory, thing)
        buffer = cast(pyopencl.Buffer, pyopencl.Buffer.from_int_ptr(memory, retain=True))
    finally:
        _loader.clReleaseMemObject(memory)
    if thing is not None:
        with contextlib.suppress(TypeError):
            _watch(buffer)
    return buffer


def _check_flags(flags: Any) -> int:
    return _arrays.whole_number("flags", flags, 1 << 64)


def _check_writable(memory: _arrays.Span, flags: int) -> None:
    if memory.read_only and not flags & pyopencl.mem_flags.READ_ONLY:
        raise ValueError("the array is not writable: import it with mem_flags.READ_ONLY")


class _Memory:
    """Memory of climport_alloc_for_context(), which numpy.asarray() takes.  At the end of the
    interpreter a kernel may still use the memory, which then goes with the process."""

    def __init__(self, context: pyopencl.Context, size: int):
        address = _library.alloc_for_context(context.int_ptr, size)
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1",
                                    "data": (address, False)}
        weakref.finalize(self, _library.free, address).atexit = False


def _allocate(context: pyopencl.Context, shape: Any, dtype: Any, order: Any,
              is_zero: bool) -> numpy.ndarray:
    _sweep()
    kind = numpy.dtype(dtype)
    if kind.hasobject:
        raise TypeError("objects of Python are no memory of kernels")
    lengths = numpy.broadcast_shapes(shape)
    size = math.prod(lengths) * kind.itemsize
    memory = numpy.asarray(_Memory(context, max(size, 1)))
    if is_zero:
        memory.fill(0)
    return numpy.ndarray(lengths, kind, memory, order=order)


def empty(context: pyopencl.Context, shape: Any, dtype: Any = float,
          order: str = "C") -> numpy.ndarray:
    """numpy.empty() at an address that all devices of the context import, NVIDIA's too.

    Arrays up to 1 MiB share slabs of 2 MiB, and larger arrays have multiples of 2 MiB.  The memory
    goes with the array and its buffers.

    Raises OSError with the sentence of the cause if a device takes no memory of the host.
    """
    return _allocate(context, shape, dtype, order, False)


def zeros(context: pyopencl.Context, shape: Any, dtype: Any = float,
          order: str = "C") -> numpy.ndarray:
    """numpy.zeros() at such an address."""
    return _allocate(context, shape, dtype, order, True)


def import_host(context: pyopencl.Context, array: Any,
                flags: int = pyopencl.mem_flags.READ_WRITE) -> pyopencl.Buffer:
    """A buffer over the memory of an array of the host: zero copy.

    @array is contiguous, and has __array_interface__ (NumPy) or __dlpack__ (PyTorch, JAX and others)
    of memory of the host.  @flags are pyopencl.mem_flags for kernels; an array that is not writable
    needs READ_ONLY.  The array lives as long as the buffer.  empty() and zeros() make arrays at
    addresses that every device of a context takes.

    The program waits for commands on the buffer before it reads or writes the array, as with any
    memory that a kernel uses.

    Raises Error if the device takes no such memory.  Nothing is ever copied.
    """
    _sweep()
    flags = _check_flags(flags)
    memory, keep = _arrays.host_span(array)
    _check_writable(memory, flags)
    error = c_int32(0)
    made = _library.library.clImportMemoryARM(context.int_ptr, flags, None, memory.address,
                                              memory.size, error)
    return _buffer(made, error.value, keep)


def import_dmabuf(context: pyopencl.Context, fd: int, size: int, offset: int = 0,
                  flags: int = pyopencl.mem_flags.READ_WRITE) -> pyopencl.Buffer:
    """A buffer over @size bytes of a dma-buf, from byte @offset on: zero copy.

    @fd may be closed as soon as the function returns; the buffer keeps the dma-buf.

    Raises Error if the device takes no such memory, or if @offset is no multiple of the device's
    alignment.  ValueError: a number that is negative or too large, or a size of 0.
    """
    if not size:
        raise ValueError("size is 0")
    flags = _check_flags(flags)
    dmabuf = _library.Dmabuf(_arrays.whole_number("fd", fd, 1 << 31),
                             _arrays.whole_number("offset", offset, 1 << 64),
                             _arrays.whole_number("size", size, 1 << 64), 0)
    error = c_int32(0)
    made = _library.library.climport_create_buffer(context.int_ptr, c_uint64(flags), None, dmabuf,
                                                   error)
    if not made and error.value == pyopencl.status_code.MISALIGNED_SUB_BUFFER_OFFSET:
        raise Error(f"offset {offset} is no multiple of the device's alignment "
                    "(CL_DEVICE_MEM_BASE_ADDR_ALIGN)", error.value)
    return _buffer(made, error.value, None)
