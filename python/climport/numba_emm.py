# SPDX-License-Identifier: Apache-2.0
"""A memory manager for Numba (NBEP 7, interface version 1).

    NUMBA_CUDA_MEMORY_MANAGER=climport.numba_emm python3 program.py

Device memory comes from slabs, and is reused when the device has passed an event after the free.
The built-in manager's cuMemFree() waits for the device; a free of this manager calls no driver.

Slabs are of cuMemAlloc(), because the IPC handles of CUDA that Numba's programs exchange are for no
other memory.  With CLIMPORT_NUMBA_VMM=1 slabs are of climport_alloc(CLIMPORT_DEVICE): OpenCL on
NVIDIA imports arrays with no copy, and get_ipc_handle() raises OSError.

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
from typing import Any, Dict, Iterator, List

from numba.cuda import (GetIpcHandleMixin, HostOnlyCUDAMemoryManager, MappedMemory, MemoryInfo,
                        MemoryPointer, PinnedMemory)
from numba.cuda.cudadrv import driver as _numba

from . import _library, _pool

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

    def _cuda_alloc(size: int) -> int:
        return int(_numba.driver.cuMemAlloc(size))

    def _cuda_host_alloc(size: int, flags: int) -> int:
        return int(_numba.driver.cuMemHostAlloc(size, flags))

    def _cuda_memory_info() -> "tuple[int, int]":
        return _numba.driver.cuMemGetInfo()

    def _error_code(code: int) -> Any:
        return _binding.CUresult(code)
else:
    _device_pointer = ctypes.c_uint64
    _host_pointer = ctypes.c_void_p

    def _cuda_alloc(size: int) -> int:
        address = _device_pointer()
        _numba.driver.cuMemAlloc(ctypes.byref(address), size)
        return address.value

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


class _CudaSlabs:
    """Slabs of cuMemAlloc()."""

    @staticmethod
    def alloc(size: int) -> int:
        with _memory_errors():
            return _cuda_alloc(size)

    @staticmethod
    def free(base: int) -> None:
        _library.library.climport_invalidate(base, 1)
        _numba.driver.cuMemFree(_device_pointer(base))


class _VmmSlabs:
    """Slabs of climport_alloc(CLIMPORT_DEVICE)."""

    def __init__(self, device: Any):
        uuid = device.uuid
        self._uuid = bytes.fromhex(uuid.replace("GPU-", "").replace("-", ""))

    def alloc(self, size: int) -> int:
        with _memory_errors():
            return _library.alloc(_library.DEVICE, size, 0, self._uuid)

    @staticmethod
    def free(base: int) -> None:
        _library.free(base)


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

    def __init__(self, context: Any):
        self._context = context
        self._stream = context.get_legacy_default_stream()
        self._spare: List[Any] = []
        self.is_foreign = os.environ.get("CLIMPORT_NUMBA_SYNC", "0") not in ("", "0")

    def record(self) -> Any:
        if self.is_foreign:
            self._context.synchronize()
            return None
        event = self._spare.pop() if self._spare else self._context.create_event(timing=False)
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


def _watch_streams(context: Any, order: _Order) -> None:
    """Tells the order of streams that the program brings."""
    create = context.create_external_stream

    def create_external_stream(pointer: int) -> Any:
        if pointer > 2:  # NULL, and the default streams that have numbers
            order.is_foreign = True
        return create(pointer)

    context.create_external_stream = create_external_stream


class Manager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """The manager of a context.  HostOnlyCUDAMemoryManager manages managed memory, memory that the
    program pins (mempin), and write-combined memory."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._lock = threading.Lock()
        self._pools: "tuple[_pool.Pool, _pool.Pool] | None" = None

    def initialize(self) -> None:
        """The context becomes active."""
        with self._lock:
            if self._pools is None:
                self._pools = self._make_pools()

    def _make_pools(self) -> "tuple[_pool.Pool, _pool.Pool]":
        context = weakref.proxy(self.context)
        order = _Order(context)
        _watch_streams(self.context, order)
        vmm = os.environ.get("CLIMPORT_NUMBA_VMM", "0") not in ("", "0")
        source = _VmmSlabs(self.context.device) if vmm else _CudaSlabs()
        self.deallocations.memory_capacity = total = _cuda_memory_info()[1]
        limit = int(total * KEPT_RATIO)
        return (_pool.Pool(source, order, limit), _pool.Pool(_HostSlabs(context), order, limit))

    @property
    def _device(self) -> _pool.Pool:
        self.initialize()
        return self._pools[0]

    @property
    def _host(self) -> _pool.Pool:
        self.initialize()
        return self._pools[1]

    @staticmethod
    def _alloc(pool: _pool.Pool, size: int) -> _pool.Part:
        try:
            return pool.alloc(size)
        except _OutOfMemory as error:
            raise error.error from None

    def memalloc(self, size: int) -> MemoryPointer:
        """Device memory."""
        part = self._alloc(self._device, size)
        return MemoryPointer(weakref.proxy(self.context), _device_pointer(part.address), size,
                             finalizer=functools.partial(self._device.free, part.token))

    def memhostalloc(self, size: int, mapped: bool = False, portable: bool = False,
                     wc: bool = False) -> Any:
        """Pinned memory of the host, portable always.  Write-combined memory is CUDA's own."""
        if wc:
            return super().memhostalloc(size, mapped, portable, wc)
        pool = self._host
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
        if isinstance(self._device._source, _VmmSlabs):
            raise OSError(errno.EOPNOTSUPP, "CUDA has no IPC handles for VMM memory: "
                          "climport.export() makes a descriptor, or unset CLIMPORT_NUMBA_VMM")
        return super().get_ipc_handle(memory)

    def get_memory_info(self) -> MemoryInfo:
        """Free memory is the device's, and the free part of slabs."""
        free, total = _cuda_memory_info()
        return MemoryInfo(free=free + self._device.free_bytes(), total=total)

    def reset(self) -> None:
        """Frees all memory of the context.  Host memory that the program still has stays mapped."""
        super().reset()
        with self._lock:
            pools, self._pools = self._pools, None
        if pools is not None:
            pools[0].reset()
            pools[1].close()

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """No memory goes back to CUDA meanwhile.  Memory is reused as ever, which calls no function
        that waits for the device."""
        pools = (self._device, self._host)
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
