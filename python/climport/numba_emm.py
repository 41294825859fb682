# SPDX-License-Identifier: Apache-2.0
"""A memory manager for Numba (NBEP 7, interface version 1).

    NUMBA_CUDA_MEMORY_MANAGER=climport.numba_emm python3 program.py

Device memory comes from a pool of libclimport's (climport_pool_create), and is reused when the device
has passed an event after the free.  The built-in manager's cuMemFree() waits for the device; a free
of this manager calls no driver.

The pool's memory is of cuMemAlloc(), because the IPC handles of CUDA that Numba's programs exchange
are for no other memory.  With CLIMPORT_NUMBA_VMM=1 the memory is climport_alloc(CLIMPORT_DEVICE)'s:
OpenCL on NVIDIA imports arrays with no copy, and get_ipc_handle() raises OSError.

Pinned and mapped host memory is in slabs of cuMemHostAlloc(), which OpenCL imports with no copy on
NVIDIA and on CPUs.  A registration (climport_register()) spares imports the pinning.

Works with numba.cuda of Numba 0.56 (ctypes) and with numba-cuda (cuda.bindings).
"""
import contextlib
import ctypes
import errno
import functools
import operator
import os
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, Optional

from numba.cuda import (GetIpcHandleMixin, HostOnlyCUDAMemoryManager, MappedMemory, MemoryInfo,
                        MemoryPointer, PinnedMemory)
from numba.cuda.cudadrv import driver as _numba

from . import _device, _library

__all__ = ["Manager"]

INTERFACE_VERSION = 1
OUT_OF_MEMORY = 2

# Numba 0.56 calls libcuda by ctypes, or by NVIDIA's binding if asked; numba-cuda by the binding.
_HAS_BINDING = getattr(_numba, "USE_NV_BINDING", True)


if _HAS_BINDING:
    from cuda.bindings import driver as _binding

    _device_pointer = _binding.CUdeviceptr
    _host_pointer: Any = int

    def _cuda_memory_info() -> "tuple[int, int]":
        free, total = _numba.driver.cuMemGetInfo()
        return free, total

    def _error_code(code: int) -> Any:
        return _binding.CUresult(code)
else:
    _device_pointer = ctypes.c_uint64
    _host_pointer = ctypes.c_void_p

    def _cuda_memory_info() -> "tuple[int, int]":
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        _numba.driver.cuMemGetInfo(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def _error_code(code: int) -> Any:
        return code


def _numba_error(error: OSError) -> Exception:
    """Numba's exception in place of libclimport's."""
    if error.errno == errno.ENOMEM:
        raised: Exception = _numba.CudaAPIError(_error_code(OUT_OF_MEMORY), error.strerror)
        return raised
    return error


def _watch_streams(context: Any, tell: "Callable[[], None]") -> None:
    """Calls @tell when the program brings a stream."""
    create = context.create_external_stream

    def create_external_stream(pointer: int) -> Any:
        if pointer > 2:  # NULL, and the default streams that have numbers
            tell()
        return create(pointer)

    context.create_external_stream = create_external_stream


class _Lazy:
    """An attribute that is made when the program asks for it."""

    def __init__(self, make: "Callable[[Any], Any]"):
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, memory: Any, owner: type) -> Any:
        made = memory.__dict__[self._name] = self._make(memory)
        return made


def _release_nothing(_address: int) -> None:
    """The release of memory that free() has freed."""


class _DeviceMemory(MemoryPointer):
    """Numba's MemoryPointer, whose constructor and finalizer take longer than all of an allocation.
    A class for each context has @context."""
    is_managed = True
    refct = 1
    address = 0
    size = 0
    _owner = None
    _release: "Callable[[int], None]" = staticmethod(_release_nothing)
    device_pointer = _Lazy(lambda memory: _device_pointer(memory.address))
    handle = _Lazy(lambda memory: memory.device_pointer)
    _cuda_memsize_ = _Lazy(lambda memory: memory.size)

    def __init__(self, address: int, size: int, release: "Callable[[int], None]"):
        # pylint: disable=super-init-not-called
        self.address = address
        self.size = size
        self._release = release

    def __del__(self) -> None:
        self._release(self.address)

    def free(self) -> None:
        """Frees the memory now."""
        release = self.__dict__.pop("_release", None)
        if release is None:
            raise RuntimeError("Freeing dead memory")
        release(self.address)


def _ordinal(device: Any) -> int:
    """Numba 0.56 has numbers of ctypes for devices of contexts that the program brings."""
    return int(getattr(device.id, "value", device.id))


class _Pools:
    """What a manager has from the first allocation to reset()."""

    def __init__(self, context: Any, is_foreign: bool):
        ordinal = _ordinal(context.device)
        self.is_vmm = os.environ.get("CLIMPORT_NUMBA_VMM", "0") not in ("", "0")
        self.device = _device.DevicePool(ordinal, 0 if self.is_vmm else _library.POOL_IPC)
        self.host = _device.HostPool(ordinal)
        self.memory = type("_DeviceMemory", (_DeviceMemory,), {"context": weakref.proxy(context)})
        if is_foreign:
            self.expect_all_streams()

    def expect_all_streams(self) -> None:
        """Streams of any kind may use memory."""
        self.device.stream = self.host.stream = _library.STREAMS_ALL

    def close(self) -> None:
        """The context ends."""
        self.device.close()
        self.host.close()


class Manager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """The manager of a context.  HostOnlyCUDAMemoryManager manages managed memory, memory that the
    program pins (mempin), and write-combined memory."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._lock = threading.RLock()  # finalizers and signal handlers allocate, too
        self._is_active = False
        self._is_foreign = os.environ.get("CLIMPORT_NUMBA_SYNC", "0") not in ("", "0")
        self._made: Optional[_Pools] = None
        # Of the pools, what memalloc() needs.
        self._ends: "Dict[int, _device.Ends]" = {}
        self._memory: Any = None

    def initialize(self) -> None:
        """The context becomes active."""
        with self._lock:
            if not self._is_active:
                self._is_active = True
                self.deallocations.memory_capacity = _cuda_memory_info()[1]
                _watch_streams(self.context, self._expect_all_streams)

    def _expect_all_streams(self) -> None:
        """Streams of any kind may use memory."""
        with self._lock:
            self._is_foreign = True
            if self._made is not None:
                self._made.expect_all_streams()

    @property
    def _pools(self) -> _Pools:
        self.initialize()
        with self._lock:
            if self._made is None:
                try:
                    self._keep(_Pools(self.context, self._is_foreign))
                except OSError as error:
                    raise _numba_error(error) from error
            assert self._made is not None
            return self._made

    def _keep(self, pools: _Pools) -> None:
        """A finalizer that ran meanwhile may have made pools."""
        if self._made is not None:
            pools.close()
            return
        self._made = pools
        self._memory = pools.memory
        self._ends = pools.device.ends

    def memalloc(self, size: int) -> MemoryPointer:
        """Device memory."""
        try:
            # _device.magazine_key(size), whose call would be a fifth of the time
            take, release = self._ends[(size - 1).bit_length() if 0 < size <= _device.SMALL
                                       else 64 + (size - 1 >> 21) if size > 0 else -1]
            return self._memory(take(), size, release)
        except (AttributeError, IndexError, KeyError, TypeError):  # or a number of NumPy's
            return self._memalloc_slowly(operator.index(size))

    def _memalloc_slowly(self, size: int) -> MemoryPointer:
        while True:
            pools = self._made or self._pools
            try:
                take, release = pools.device.refill(size)
                return pools.memory(take(), size, release)
            except IndexError:  # another thread took what was made ready
                continue
            except OSError as error:
                raise _numba_error(error) from error

    def memhostalloc(self, size: int, mapped: bool = False, portable: bool = False,
                     wc: bool = False) -> Any:
        """Pinned memory of the host, portable always.  Write-combined memory is CUDA's own."""
        if wc:
            return super().memhostalloc(size, mapped, portable, wc)
        pool = self._pools.host
        try:
            address = pool.alloc(operator.index(size))
        except OSError as error:
            raise _numba_error(error) from error
        pointer = _host_pointer(address)
        context = weakref.proxy(self.context)
        if not mapped:
            return PinnedMemory(context, pointer, size,
                                finalizer=functools.partial(pool.free, address))
        key = _mapped_key(pool, address)
        memory = MappedMemory(context, pointer, size, finalizer=functools.partial(
            _free_mapped, self.allocations, key, pool, address))
        self.allocations[key] = memory
        return memory.own()

    def get_ipc_handle(self, memory: Any) -> Any:
        """A handle for another process, which pickles.  The other process gets the whole slab."""
        if self._pools.is_vmm:
            raise OSError(errno.EOPNOTSUPP, "CUDA has no IPC handles for VMM memory: "
                          "climport.export() makes a descriptor, or unset CLIMPORT_NUMBA_VMM")
        return super().get_ipc_handle(memory)

    def get_memory_info(self) -> MemoryInfo:
        """Free memory is the device's, and the free part of slabs."""
        free, total = _cuda_memory_info()
        return MemoryInfo(free=free + self._pools.device.free_bytes(), total=total)

    def reset(self) -> None:
        """Frees all memory of the context.  Host memory that the program still has stays mapped."""
        super().reset()
        with self._lock:
            pools, self._made, self._ends = self._made, None, {}
        if pools is not None:
            pools.close()

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """No memory goes back to CUDA meanwhile, unless memory runs out.  Memory is reused as ever,
        which calls no function that waits for the device."""
        pools = (self._pools.device, self._pools.host)
        with super().defer_cleanup():
            for pool in pools:
                pool.keep()
            try:
                yield
            finally:
                for pool in pools:
                    pool.release()

    @property
    def interface_version(self) -> int:
        """The version of NBEP 7."""
        return INTERFACE_VERSION


def _mapped_key(pool: _device.HostPool, address: int) -> "tuple[int, int]":
    """Other keys of the manager's allocations are addresses.  After a reset an address may be used
    again, by another pool."""
    return (id(pool), address)


def _free_mapped(allocations: Any, key: Any, pool: _device.HostPool, address: int) -> None:
    allocations.pop(key, None)
    pool.free(address)


_numba_memory_manager = Manager
