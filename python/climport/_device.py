# SPDX-License-Identifier: Apache-2.0
"""Device memory of a pool of libclimport's (climport_pool_create), without a foreign call for each
allocation.

A *magazine* has parts of a size: parts that are *ready* for the next allocations, and parts that were
*freed*.  When no part is ready, the freed parts go back to the pool together, which takes an event of
the device for all of them, and the pool gives as many parts as it has.  Until so many parts were freed
that the event is worth its time, new parts come instead.

Finalizers of Python free at any time: in any thread, in the middle of an allocation of the same
thread, after close(), and at the end of the interpreter.  A free appends to a deque, and nothing else.
"""
import collections
import ctypes
import errno
import threading
from typing import Any, Callable, Dict, List, Tuple

from . import _library

SLAB = 2 << 20
SMALL = SLAB // 2
SMALLEST = 512
# The most parts in a magazine, and their share of the bytes that the pool may keep without use.
MOST_PARTS = 64
SHARE = 16


def part_size(size: int) -> int:
    """The size of the part for @size bytes."""
    if size > SMALL:
        return -(-size // SLAB) * SLAB
    return max(SMALLEST, 1 << (size - 1).bit_length())


class Magazine:
    """Parts of @part bytes; @batch: how many freed parts go back together."""
    __slots__ = ("part", "batch", "ready", "freed", "ends")

    def __init__(self, part: int, limit: int):
        self.part = part
        self.batch = max(1, min(MOST_PARTS, limit // SHARE // part))
        self.ready: List[int] = []
        self.freed: "collections.deque[int]" = collections.deque()
        self.ends: Ends = (self.ready.pop, self.freed.append)

    def take_freed(self) -> List[int]:
        """The freed parts, of which other threads may add more meanwhile."""
        return [self.freed.popleft() for _ in range(len(self.freed))]

    def take_ready(self) -> List[int]:
        """The ready parts."""
        taken = []
        while self.ready:
            try:
                taken.append(self.ready.pop())
            except IndexError:
                break
        return taken


# What takes a ready part, or raises IndexError; and what frees a part.
Ends = Tuple[Callable[[], int], Callable[[int], None]]


class DevicePool:
    """A pool of a device.  @ends: the ends of magazines by magazine_key(); alloc() adds to them."""

    def __init__(self, ordinal: int, flags: int):
        self._pool = _library.pool_create(ordinal, flags)
        self._limit = _library.pool_info(self._pool).limit
        self._lock = threading.RLock()
        self._magazines: Dict[int, Magazine] = {}
        self._keeps = 0
        self._taken = 0  # bytes of parts that the pool gave
        self._flush_at = self._limit // 2  # of these bytes
        self.stream = _library.STREAMS_BLOCKING
        self.ends: Dict[int, Ends] = {}

    def alloc(self, size: int) -> "tuple[int, Callable[[int], None]]":
        """An address, and what frees the address.  Where no part is ready.

        Raises OSError: ENOMEM, also after the device has finished.
        """
        with self._lock:
            magazine = self._magazine(size)
            take, free = magazine.ends
            while True:  # other threads may take the parts
                try:
                    return take(), free
                except IndexError:
                    self._refill(magazine)

    def _magazine(self, size: int) -> Magazine:
        part = part_size(size)
        magazine = self._magazines.get(part)
        if magazine is None:
            magazine = self._magazines[part] = Magazine(part, self._limit)
        self.ends[magazine_key(size)] = magazine.ends
        return magazine

    def _refill(self, magazine: Magazine) -> None:
        if len(magazine.freed) >= magazine.batch:
            self._free(magazine, magazine.take_freed())
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
        addresses = (ctypes.c_void_p * most)()
        count = _library.pool_alloc(self._pool, magazine.part, self.stream, addresses)
        self._taken += count * magazine.part
        magazine.ready += reversed(addresses[:count])  # the first is taken first

    def _free(self, magazine: Magazine, addresses: List[int]) -> None:
        if addresses:
            self._taken -= len(addresses) * magazine.part
            _library.pool_free(self._pool, addresses, self.stream)

    def _flush(self) -> None:
        """The pool gets all parts that the program does not use, and so knows what it keeps."""
        for magazine in list(self._magazines.values()):
            self._free(magazine, magazine.take_freed())
            self._free(magazine, magazine.take_ready())
        self._flush_at = self._taken + self._limit // 2

    def keep(self) -> None:
        """Until release(), no slab goes back unless memory runs out.  Calls nest."""
        with self._lock:
            self._keeps += 1
            _library.pool_set_limit(self._pool, _library.NO_LIMIT)

    def release(self) -> None:
        """Ends keep()."""
        with self._lock:
            self._keeps -= 1
            if not self._keeps:
                _library.pool_set_limit(self._pool, self._limit)

    def free_bytes(self) -> int:
        """Bytes of slabs that the program does not use."""
        with self._lock:
            info = _library.pool_info(self._pool)
            return info.bytes - info.used + sum(
                magazine.part * (len(magazine.ready) + len(magazine.freed))
                for magazine in self._magazines.values())

    def close(self) -> None:
        """Gives all memory back, also parts in use, when the device has finished.  Frees of such
        parts do nothing from now on."""
        with self._lock:
            self.ends.clear()
            self._magazines.clear()
            _library.pool_destroy(self._pool)


def magazine_key(size: int) -> int:
    """A number for each size of parts.  Several numbers may be of one size."""
    return (size - 1).bit_length() if size <= SMALL else 64 - (-size >> 21)
