# SPDX-License-Identifier: Apache-2.0
"""libclimport's functions, as <CL/climport.h> declares the functions.

The wheel has libclimport.so.0, else the dynamic linker finds it; CLIMPORT_LIBRARY names another file.
A failed function raises OSError, whose text is the library's sentence.
"""
import ctypes
import errno
import os
from ctypes import POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any

# What the wheel brings, as `cmake --install` installs it.
PREFIX = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_prefix")

HOST, DEVICE = 0, 1
READ_ONLY = 1
POOL_IPC, POOL_HOST = 32, 64
STREAMS_BLOCKING, STREAMS_ALL = (1 << 64) - 1, (1 << 64) - 2
NO_LIMIT = (1 << 64) - 1

# The minor version for which the declarations below hold, while the major version is 0.
MAJOR, MINOR = 0, 2


class Dmabuf(ctypes.Structure):
    """struct climport_dmabuf"""
    _fields_ = [("fd", c_int), ("offset", c_size_t), ("size", c_size_t), ("whole", c_size_t)]


class Registration(ctypes.Structure):
    """struct climport_registration"""
    _fields_ = [("base", c_void_p), ("length", c_size_t), ("fd", c_int), ("offset", c_size_t),
                ("id", c_uint64), ("reserved", c_void_p * 2)]


class Stats(ctypes.Structure):
    """struct climport_stats"""
    _fields_ = [(name, c_uint64) for name in (
        "hits", "misses", "evictions", "stale", "bytes_pinned", "bytes_idle", "bytes_allocated")]


class PoolInfo(ctypes.Structure):
    """struct climport_pool_info"""
    _fields_ = [("bytes", c_uint64), ("used", c_uint64), ("limit", c_uint64)]


def _declare(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> None:
    function = getattr(library, name)
    function.restype = result
    function.argtypes = arguments


def _check_version(library: ctypes.CDLL) -> None:
    version = library.climport_version()
    major, minor = version >> 22, version >> 12 & 0x3ff
    if (major, minor) != (MAJOR, MINOR):
        raise ImportError(f"libclimport is version {major}.{minor}, "
                          f"and this package is for {MAJOR}.{MINOR}")


def _name() -> str:
    own = os.path.join(PREFIX, "lib", "libclimport.so.0")
    return os.environ.get("CLIMPORT_LIBRARY") or (
        own if os.path.exists(own) else "libclimport.so.0")


def _load() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_name())
    except OSError as error:
        raise ImportError(f"{error}: install climport, or set CLIMPORT_LIBRARY") from error
    _declare(library, "climport_version", c_uint32)
    _check_version(library)
    _declare(library, "climport_last_error", c_char_p)
    _declare(library, "climport_export_dmabuf", c_int, c_void_p, c_size_t, c_uint64,
             POINTER(Dmabuf), c_size_t)
    _declare(library, "climport_invalidate", None, c_void_p, c_size_t)
    _declare(library, "climport_register", c_int, c_void_p, c_size_t, c_uint64,
             POINTER(Registration), c_size_t)
    _declare(library, "climport_unregister", None, POINTER(Registration))
    _declare(library, "climport_alloc", c_int, c_uint, c_size_t, c_size_t, c_char_p,
             POINTER(c_void_p))
    _declare(library, "climport_alloc_for_context", c_int, c_void_p, c_size_t, c_size_t, c_uint64,
             POINTER(c_void_p), POINTER(c_uint))
    _declare(library, "climport_free", None, c_void_p)
    _declare(library, "climport_pool_create", c_int, c_int, c_uint64, POINTER(c_void_p))
    _declare(library, "climport_pool_destroy", None, c_void_p)
    _declare(library, "climport_pool_close", None, c_void_p)
    _declare(library, "climport_pool_alloc", c_int, c_void_p, c_size_t, c_void_p, c_void_p, c_int)
    _declare(library, "climport_pool_free", c_int, c_void_p, c_void_p, c_int, c_void_p)
    _declare(library, "climport_pool_set_limit", None, c_void_p, c_uint64)
    _declare(library, "climport_pool_get_info", c_int, c_void_p, POINTER(PoolInfo), c_size_t)
    _declare(library, "climport_get_stats", c_int, POINTER(Stats), c_size_t)
    _declare(library, "climport_create_buffer", c_void_p, c_void_p, c_uint64, c_void_p,
             POINTER(Dmabuf), POINTER(c_int32))
    _declare(library, "clImportMemoryARM", c_void_p, c_void_p, c_uint64, c_void_p, c_void_p,
             c_size_t, POINTER(c_int32))
    return library


library = _load()


def last_error() -> str:
    """The sentence of this thread's last error."""
    sentence: bytes = library.climport_last_error()
    return sentence.decode(errors="replace")


def _value(pointer: c_void_p) -> int:
    """What a successful function has set."""
    assert pointer.value is not None
    return pointer.value


def check(result: int) -> None:
    """Raises the OSError of a negative errno."""
    if result < 0:
        raise OSError(-result, last_error())


def check_size(size: int) -> None:
    """OSError: more bytes than any memory has, or fewer than none.  C would cut such a number."""
    if not 0 <= size < 1 << 62:
        raise OSError(errno.ENOMEM, f"{size} bytes exceed the address space")


def export_dmabuf(address: int, size: int, flags: int) -> Dmabuf:
    """climport_export_dmabuf()"""
    dmabuf = Dmabuf()
    check(library.climport_export_dmabuf(address, size, flags, dmabuf, ctypes.sizeof(dmabuf)))
    return dmabuf


def alloc(kind: int, size: int, alignment: int, uuid: "bytes | None") -> int:
    """climport_alloc()"""
    check_size(size)
    address = c_void_p()
    check(library.climport_alloc(kind, size, alignment, uuid, address))
    return _value(address)


def alloc_for_context(context: int, size: int) -> int:
    """climport_alloc_for_context() of memory that the CPU uses"""
    check_size(size)
    address = c_void_p()
    check(library.climport_alloc_for_context(context, size, 0, 0, address, None))
    return _value(address)


def free(address: int) -> None:
    """climport_free()"""
    library.climport_free(address)


def pool_create(device: int, flags: int) -> int:
    """climport_pool_create()"""
    pool = c_void_p()
    check(library.climport_pool_create(device, flags, pool))
    return _value(pool)


def pool_destroy(pool: int) -> None:
    """climport_pool_destroy()"""
    library.climport_pool_destroy(pool)


def pool_close(pool: int) -> None:
    """climport_pool_close()"""
    library.climport_pool_close(pool)


def pool_alloc(pool: int, size: int, stream: int, addresses: "ctypes.Array[c_void_p]") -> int:
    """climport_pool_alloc(): how many of @addresses were set"""
    check_size(size)
    count: int = library.climport_pool_alloc(pool, size, stream, addresses, len(addresses))
    check(count)
    return count


def pool_alloc_one(pool: int, size: int, stream: int) -> int:
    """climport_pool_alloc() of an address"""
    addresses = (c_void_p * 1)()
    pool_alloc(pool, size, stream, addresses)
    address: int = addresses[0]  # type: ignore[assignment]
    return address


def pool_free(pool: int, addresses: "ctypes.Array[c_void_p]", stream: int) -> None:
    """climport_pool_free()"""
    check(library.climport_pool_free(pool, addresses, len(addresses), stream))


def pool_free_one(pool: int, address: int, stream: int) -> None:
    """climport_pool_free() of an address"""
    pool_free(pool, (c_void_p * 1)(address), stream)


def pool_set_limit(pool: int, size: int) -> None:
    """climport_pool_set_limit()"""
    library.climport_pool_set_limit(pool, size)


def pool_info(pool: int) -> PoolInfo:
    """climport_pool_get_info()"""
    info = PoolInfo()
    check(library.climport_pool_get_info(pool, info, ctypes.sizeof(info)))
    return info


def register(address: int, size: int) -> Registration:
    """climport_register()"""
    registration = Registration()
    check(library.climport_register(address, size, 0, registration, ctypes.sizeof(registration)))
    return registration


def unregister(registration: Registration) -> None:
    """climport_unregister()"""
    library.climport_unregister(registration)


def stats() -> Stats:
    """climport_get_stats()"""
    out = Stats()
    check(library.climport_get_stats(out, ctypes.sizeof(out)))
    return out
