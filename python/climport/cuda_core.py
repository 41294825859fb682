# SPDX-License-Identifier: Apache-2.0
"""A memory resource for NVIDIA's cuda.core over a pool of libclimport's.

    resource = climport.cuda_core.MemoryResource(device.device_id)
    buffer = resource.allocate(1 << 20, stream=stream)
    device.memory_resource = resource
"""
import weakref
from typing import Any, List

from cuda.core import Buffer, MemoryResource as _MemoryResource

from . import _library

__all__ = ["MemoryResource"]


def _stream_of(stream: Any) -> int:
    """A stream's handle.  Without a stream, any stream may use the memory."""
    if stream is None:
        return _library.STREAMS_ALL
    return int(getattr(stream, "handle", stream))


def _destroy(pools: List[int]) -> None:
    while pools:
        _library.pool_destroy(pools.pop())


class MemoryResource(_MemoryResource):
    """Memory of a device, which is reused in the order of streams.

    With @ipc memory is of cuMemAlloc(), else climport_alloc(CLIMPORT_DEVICE)'s, which NVIDIA's OpenCL
    imports with no copy (climport.export(), climport.opencl.import_dmabuf()).
    """

    def __init__(self, device_id: int = 0, ipc: bool = False):
        self._device_id = int(device_id)
        # The garbage collector may finalize the resource before its buffers: the list is empty then.
        self._pools = [_library.pool_create(self._device_id, _library.POOL_IPC if ipc else 0)]
        # At the end of the interpreter kernels may still use the memory.
        weakref.finalize(self, _destroy, self._pools).atexit = False

    def allocate(self, size: int, *, stream: Any = None) -> Buffer:
        """A buffer, whose first use is in @stream.  Raises OSError: ENOMEM."""
        address = _library.pool_alloc_one(self._pools[0], size, _stream_of(stream))
        # A failure may have called deallocate(), or not: the memory goes with the resource at last.
        return Buffer.from_handle(address, size, mr=self, stream=stream)

    def deallocate(self, ptr: Any, size: int, *, stream: Any = None) -> None:
        """The end of a buffer, which work in @stream may still use."""
        for pool in self._pools:
            _library.pool_free_one(pool, int(ptr), _stream_of(stream))

    @property
    def device_id(self) -> int:
        """The device's number."""
        return self._device_id

    @property
    def is_device_accessible(self) -> bool:
        """True: kernels use the memory."""
        return True

    @property
    def is_host_accessible(self) -> bool:
        """False: the CPU does not."""
        return False
