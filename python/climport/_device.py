# SPDX-License-Identifier: Apache-2.0
"""Memory of pools of libclimport's (climport_pool_create).

Device memory takes no foreign call for each allocation.  A *magazine* has parts of a size: parts that
are *ready* for the next allocations, and parts that were *freed*.  When no part is ready, the freed
parts go back to the pool together, which takes an event of the device for all of them, and the pool
gives as many parts as it has.  Until so many parts were freed that the event is worth its time, new
parts come instead.

Finalizers of Python free at any time: in any thread, in the middle of an allocation of the same
thread, after close(), and at the end of the interpreter.  A free appends to a deque, and nothing else.
Finalizers and signal handlers may also allocate in the middle of an allocation, so the lock is an
RLock, and nothing is half done when Python calls a function.  An interrupt (KeyboardInterrupt) loses the
allocation or the free in which the interrupt comes at most, until close().
"""
import collections
import ctypes
import errno
import itertools
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _library

SLAB = 2 << 20
SMALL = SLAB // 2
SMALLEST = 512
# The most parts in a magazine, and their share of the bytes that the pool may keep without use.
MOST_PARTS = 64
SHARE = 8


def part_size(size: int) -> int:
    """The size of the part for @size bytes."""
    if size > SMALL:
        return -(-size // SLAB) * SLAB
    return max(SMALLEST, 1 << (size - 1).bit_length())


class Magazine:
    """Parts of @part bytes; @batch: how many freed parts go back together."""
    __slots__ = ("part", "batch", "ready", "freed", "leaving", "ends")

    def __init__(self, part: int, limit: int):
        self.part = part
        self.batch = max(1, min(MOST_PARTS, limit // SHARE // part))
        self.ready: List[int] = []
        self.freed: "collections.deque[int]" = collections.deque()
        self.leaving: List[int] = []  # on the way to the pool
        self.ends: Ends = (self.ready.pop, self.freed.append)

# What takes a ready part, or raises IndexError; and what frees a part.
Ends = Tuple[Callable[[], int], Callable[[int], None]]


class DevicePool:
    """A pool of a device.  @ends: the ends of magazines by magazine_key(); alloc() adds to them."""

    def __init__(self, ordinal: int, flags: int):
        self._pool: Optional[int] = _library.pool_create(ordinal, flags)
        self._limit = _library.pool_info(self._pool).limit
        self._lock = threading.RLock()
        self._magazines: Dict[int, Magazine] = {}
        self._keeps = 0
        self._taken = 0  # bytes of parts that the pool gave
        self._flush_at = self._limit // 2  # of these bytes
        self.stream = _library.STREAMS_BLOCKING
        self.ends: Dict[int, Ends] = {}

    def refill(self, size: int) -> Ends:
        """Makes parts ready for @size bytes, which other threads may take.

        Raises OSError: ENOMEM, also after the device has finished.
        """
        _library.check_size(size)
        with self._lock:
            if self._pool is None:
                raise OSError(errno.EINVAL, "the context was reset")
            magazine = self._magazine(size)
            if not magazine.ready:
                self._refill(magazine)
            return magazine.ends

    def _magazine(self, size: int) -> Magazine:
        part = part_size(size)
        magazine = self._magazines.get(part)
        if magazine is None:
            magazine = self._magazines.setdefault(part, Magazine(part, self._limit))
        self.ends[magazine_key(size)] = magazine.ends
        return magazine

    def _refill(self, magazine: Magazine) -> None:
        if len(magazine.freed) >= magazine.batch:
            self._free(magazine, magazine.freed, magazine.freed.popleft)
        if self._taken + magazine.part > self._flush_at:
            self._flush()
        try:
            self._alloc(magazine, magazine.batch)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            self._flush()
            self._alloc(magazine, 1)

    def _alloc(self, magazine: Magazine, most: int) -> None:
        addresses: Any = (ctypes.c_void_p * most)()
        interrupt: Optional[BaseException] = None
        try:
            assert self._pool is not None
            count = _library.pool_alloc(self._pool, magazine.part, self.stream, addresses)
        except OSError:
            raise
        except BaseException as error:  # pylint: disable=broad-exception-caught
            interrupt = error
            count = sum(map(bool, addresses))
        if count:
            magazine.ready += addresses[count - 1::-1]  # the first is taken first
            self._taken += count * magazine.part
        if interrupt is not None:
            raise interrupt

    def _free(self, magazine: Magazine, parts: Any, take: Callable[[], int]) -> None:
        """Gives parts to the pool that no other thread takes, but for ready parts."""
        leaving = magazine.leaving
        try:
            leaving.extend(itertools.islice(iter(take, None), len(parts)))
        except IndexError:  # no ready part is left
            pass
        if not leaving:
            return
        free, pool, stream = _library.library.climport_pool_free, self._pool, self.stream
        count = len(leaving)
        addresses = (ctypes.c_void_p * count)(*leaving)
        try:
            result = free(pool, addresses, count, stream)
        finally:  # also if an interrupt comes with the end of the call
            del leaving[:]
        _library.check(result)
        self._taken -= count * magazine.part

    def _flush(self) -> None:
        """The pool gets all parts that the program does not use, and so knows what it keeps."""
        for magazine in list(self._magazines.values()):
            self._free(magazine, magazine.freed, magazine.freed.popleft)
            self._free(magazine, magazine.ready, magazine.ready.pop)
        self._flush_at = self._taken + self._limit // 2

    def keep(self) -> None:
        """Until release(), no slab goes back unless memory runs out.  Calls nest."""
        with self._lock:
            self._keeps += 1
            if self._pool is not None:
                _library.pool_set_limit(self._pool, _library.NO_LIMIT)

    def release(self) -> None:
        """Ends keep()."""
        with self._lock:
            self._keeps -= 1
            if not self._keeps and self._pool is not None:
                _library.pool_set_limit(self._pool, self._limit)

    def free_bytes(self) -> int:
        """Bytes of slabs that the program does not use."""
        with self._lock:
            if self._pool is None:
                return 0
            info = _library.pool_info(self._pool)
            held = sum(magazine.part * (len(magazine.ready) + len(magazine.freed))
                       for magazine in list(self._magazines.values()))
            return int(info.bytes - info.used) + held

    def close(self) -> None:
        """Gives all memory back, also parts in use, when the device has finished.  Frees of such
        parts do nothing from now on."""
        with self._lock:
            self.ends.clear()
            self._magazines.clear()
            pool, self._pool = self._pool, None
            if pool is not None:
                _library.pool_destroy(pool)


class HostPool:
    """A pool of pinned memory of the host.  Finalizers call free(), also after close()."""

    def __init__(self, ordinal: int):
        self._pool = _library.pool_create(ordinal, _library.POOL_HOST)
        self._limit = _library.pool_info(self._pool).limit
        self._keeps = 0
        self._is_closed = False
        self.stream = _library.STREAMS_BLOCKING

    def alloc(self, size: int) -> int:
        """An address.  Raises OSError: ENOMEM."""
        if self._is_closed:
            raise OSError(errno.EINVAL, "the context was reset")
        return _library.pool_alloc_one(self._pool, size, self.stream)

    def free(self, address: int) -> None:
        """Gives memory back."""
        _library.pool_free_one(self._pool, address, self.stream)

    def keep(self) -> None:
        """As DevicePool.keep()."""
        self._keeps += 1
        if not self._is_closed:
            _library.pool_set_limit(self._pool, _library.NO_LIMIT)

    def release(self) -> None:
        """As DevicePool.release()."""
        self._keeps -= 1
        if not self._keeps and not self._is_closed:
            _library.pool_set_limit(self._pool, self._limit)

    def close(self) -> None:
        """No memory is allocated any more, and the program keeps what it has until free()."""
        if not self._is_closed:
            self._is_closed = True
            _library.pool_close(self._pool)


def magazine_key(size: int) -> int:
    """A number for each size of parts.  Several numbers may be of one size."""
    return (size - 1).bit_length() if 0 < size <= SMALL else 64 - (-size >> 21)
