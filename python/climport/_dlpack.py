# SPDX-License-Identifier: Apache-2.0
"""Arrays by DLPack's protocol, as the specification of DLPack 1.0 declares the structs.

The capsule is read and not consumed: its name stays as it is, and its destructor gives the array
back.  So whoever uses the memory keeps the capsule.
"""
import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p, py_object
from typing import Any, NamedTuple, Optional, Tuple

# Types of devices: kDLCPU and kDLCUDAHost; kDLCUDA and kDLCUDAManaged.
HOST = (1, 3)
CUDA = (2, 13)
VERSION = (1, 0)
READ_ONLY = 1
NO_SYNCHRONIZATION = -1


class _Tensor(ctypes.Structure):
    """DLTensor"""
    _fields_ = [("data", c_void_p), ("device_type", c_int), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned"""
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


class Tensor(NamedTuple):
    """An array's memory.  @strides are bytes; @item: bytes of an element."""
    address: int
    shape: Tuple[int, ...]
    strides: Optional[Tuple[int, ...]]
    item: int
    read_only: bool


_name = ctypes.pythonapi.PyCapsule_GetName
_name.argtypes = [py_object]
_name.restype = c_char_p
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes = [py_object, c_char_p]
_pointer.restype = c_void_p


def capsule(array: Any, device: int) -> Any:
    """The array's capsule.  An array may refuse the version, or what came later than DLPack 0.8."""
    stream = NO_SYNCHRONIZATION if device in CUDA else None
    try:
        return array.__dlpack__(stream=stream, max_version=VERSION)
    except TypeError:
        return array.__dlpack__(stream=stream)


def _describe(array: _Tensor, read_only: bool) -> Tensor:
    bits = array.bits * array.lanes
    if bits % 8:
        raise ValueError(f"elements of {bits} bits are no bytes")
    item = bits // 8
    shape = tuple(array.shape[:array.ndim]) if array.ndim else ()
    strides = None
    if array.strides:
        strides = tuple(item * stride for stride in array.strides[:array.ndim])
    return Tensor((array.data or 0) + array.byte_offset, shape, strides, item, read_only)


def tensor(made: Any) -> Tensor:
    """What a capsule has, which stays the capsule's."""
    name = _name(made)
    if name == b"dltensor":
        return _describe(_Tensor.from_address(_pointer(made, name)), False)
    if name != b"dltensor_versioned":
        raise TypeError(f"a capsule of the name {name!r} is none of DLPack's")
    managed = _Versioned.from_address(_pointer(made, name))
    if managed.major != VERSION[0]:
        raise TypeError(f"the array is of DLPack {managed.major}.{managed.minor}")
    return _describe(managed.tensor, bool(managed.flags & READ_ONLY))
