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
import os
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional

from numba.cuda import (GetIpcHandleMixin, HostOnlyCUDAMemoryManager, MappedMemory, MemoryInfo,
                        MemoryPointer, PinnedMemory)
from numba.cuda.cudadrv import driver as _numba

from . import _device, _library, _pool

__all__ = ["Manager"]

INTERFACE_VERSION = 1
OUT_OF_MEMORY = 2
HOST_PORTABLE, HOST_MAPPED = 1, 2
# Of a device's memory, the part that may be kept without use, as Numba's built-in manager.
KEPT_RATIO = 0.2

# Numba 0.56 calls libcuda by ctypes, or by NVIDIA's binding if asked; numba-cuda by the binding.
_HAS_BINDING = getattr(_numba, "USE_NV_BINDING", True)


if _HAS_BINDING:
    from cuda.bindings import driver as _binding  # type: ignore[import-not-found]

    _device_pointer = _binding.CUdeviceptr
    _host_pointer = int

    def _cuda_host_alloc(size: int, flags: int) -> int:
        return int(_numba.driver.cuMemHostAlloc(size, flags))

    def _cuda_memory_info() -> "tuple[int, int]":
        return _numba.driver.cuMemGetInfo()

    def _error_code(code: int) -> Any:
        return _binding.CUresult(code)
else:
    _device_pointer = ctypes.c_uint64
    _host_pointer = ctypes.c_void_p

    def _cuda_host_alloc(size: int, flags: int) -> int:
        address = _host_pointer()
        _numba.driver.cuMemHostAlloc(ctypes.byref(address), size, flags)
        return address.value

    def _cuda_memory_info() -> "tuple[int, int]":
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        _numba.driver.cuMemGetInfo(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def _error_code(code: int) -> Any:
        return code


class _OutOfMemory(MemoryError):
    """MemoryError for the pool, which keeps Numba's exception for the program."""

    def __init__(self, error: Exception):
        super().__init__(str(error))
        self.error = error


@contextlib.contextmanager
def _memory_errors() -> Iterator[None]:
    try:
        yield
    except _numba.CudaAPIError as error:
        if error.code == _error_code(OUT_OF_MEMORY):
            raise _OutOfMemory(error) from error
        raise
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raised = _numba.CudaAPIError(_error_code(OUT_OF_MEMORY), error.strerror)
            raise _OutOfMemory(raised) from error
        raise


class _HostSlabs:
    """Slabs of cuMemHostAlloc(), registered for imports by OpenCL."""

    def __init__(self, context: Any):
        self._context = context
        self._registrations: Dict[int, Any] = {}

    def alloc(self, size: int) -> int:
        with _memory_errors():
            base = _cuda_host_alloc(size, HOST_PORTABLE | HOST_MAPPED)
        # Without a registration each import pins its own pages.
        with contextlib.suppress(OSError):
            self._registrations[base] = _library.register(base, size)
        return base

    def detach(self, base: int) -> None:
        """The context ends.  CUDA may unmap the pages, so no registration may promise the pages."""
        registration = self._registrations.pop(base, None)
        if registration is not None:
            _library.unregister(registration)

    def free(self, base: int) -> None:
        self.detach(base)
        _numba.driver.cuMemFreeHost(_host_pointer(base))

    def abandon(self, base: int) -> None:
        """The end of a context that was destroyed has freed the memory, and the address may be
        another allocation's."""
        with contextlib.suppress(ReferenceError, _numba.CudaAPIError):
            primary = self._context.device.primary_context
            if primary is not None and primary.handle is self._context.handle:
                _numba.driver.cuMemFreeHost(_host_pointer(base))


class _Order:
    """Events on the legacy default stream, which the device reaches after the earlier work of all
    blocking streams.  Numba makes blocking streams alone.  If the program brought a stream of its
    own, which may be of the other kind, the context is synchronized in place of an event, as
    cuMemFree() does."""

    def __init__(self, context: Any, is_foreign: bool):
        self.context = context
        self._stream = context.get_legacy_default_stream()
        self._spare: List[Any] = []
        self.is_foreign = is_foreign

    def record(self) -> Any:
        if self.is_foreign:
            self.context.synchronize()
            return None
        event = self._spare.pop() if self._spare else self.context.create_event(timing=False)
        event.record(self._stream)
        return event

    def is_reached(self, event: Any) -> bool:
        if event is None:
            return True
        if not event.query():
            return False
        self._spare.append(event)
        return True

    def wait(self, event: Any) -> None:
        if event is not None:
            event.synchronize()
            self._spare.append(event)


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


class _DeviceMemory(MemoryPointer):
    """Numba's MemoryPointer, whose constructor and finalizer take longer than all of an allocation.
    A class for each context has @context."""
    is_managed = True
    refct = 1
    _owner = None
    device_pointer = _Lazy(lambda memory: _device_pointer(memory.address))
    handle = _Lazy(lambda memory: memory.device_pointer)
    _cuda_memsize_ = _Lazy(lambda memory: memory.size)

    def __init__(self, address: int, size: int, release: "Callable[[int], None]"):
        # pylint: disable=super-init-not-called
        self.address = address
        self.size = size
        self._release = release

    @staticmethod
    def _release(_address: int) -> None:
        """After free()."""

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
        proxy = weakref.proxy(context)
        self.is_vmm = os.environ.get("CLIMPORT_NUMBA_VMM", "0") not in ("", "0")
        with _memory_errors():
            self.device = _device.DevicePool(_ordinal(context.device),
                                             0 if self.is_vmm else _library.POOL_IPC)
        self._order = _Order(proxy, is_foreign)
        self.host = _pool.Pool(_HostSlabs(proxy), self._order,
                               int(_cuda_memory_info()[1] * KEPT_RATIO))
        self.memory = type("_DeviceMemory", (_DeviceMemory,), {"context": proxy})
        if is_foreign:
            self.expect_all_streams()

    def expect_all_streams(self) -> None:
        """Streams of any kind may use memory."""
        self._order.is_foreign = True
        self.device.stream = _library.STREAMS_ALL


class Manager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """The manager of a context.  HostOnlyCUDAMemoryManager manages managed memory, memory that the
    program pins (mempin), and write-combined memory."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._lock = threading.Lock()
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
                self._made = _Pools(self.context, self._is_foreign)
                self._memory = self._made.memory
                self._ends = self._made.device.ends
            return self._made

    def memalloc(self, size: int) -> MemoryPointer:
        """Device memory."""
        try:
            # _device.magazine_key(size), whose call would be a fifth of the time
            take, release = self._ends[(size - 1).bit_length() if size <= _device.SMALL
                                       else 64 - (-size >> 21)]
            return self._memory(take(), size, release)
        except (KeyError, IndexError):
            return self._memalloc_slowly(size)

    def _memalloc_slowly(self, size: int) -> MemoryPointer:
        pools = self._pools
        try:
            with _memory_errors():
                address, release = pools.device.alloc(size)
        except _OutOfMemory as error:
            raise error.error from None
        return pools.memory(address, size, release)

    @staticmethod
    def _alloc(pool: _pool.Pool, size: int) -> _pool.Part:
        try:
            return pool.alloc(size)
        except _OutOfMemory as error:
            raise error.error from None

    def memhostalloc(self, size: int, mapped: bool = False, portable: bool = False,
                     wc: bool = False) -> Any:
        """Pinned memory of the host, portable always.  Write-combined memory is CUDA's own."""
        if wc:
            return super().memhostalloc(size, mapped, portable, wc)
        pool = self._pools.host
        part = self._alloc(pool, size)
        pointer = _host_pointer(part.address)
        context = weakref.proxy(self.context)
        if not mapped:
            return PinnedMemory(context, pointer, size,
                                finalizer=functools.partial(pool.free, part.token))
        memory = MappedMemory(context, pointer, size, finalizer=functools.partial(
            _free_mapped, self.allocations, pool, part.token))
        self.allocations[_mapped_key(part.token)] = memory
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
            pools.device.close()
            pools.host.close()

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


def _mapped_key(token: int) -> "tuple[str, int]":
    """Other keys of the manager's allocations are addresses."""
    return ("climport", token)


def _free_mapped(allocations: Any, pool: _pool.Pool, token: int) -> None:
    allocations.pop(_mapped_key(token), None)
    pool.free(token)


_numba_memory_manager = Manager
