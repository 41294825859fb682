# SPDX-License-Identifier: Apache-2.0
"""The tool climport: python -m climport COMMAND.  A program of Python needs no interpreter's name:
python -m climport run program.py."""
import contextlib
import ctypes
import glob
import importlib.util
import os
import shutil
import sys
from typing import List, NoReturn, Optional

from . import _library


def _find_tool() -> str:
    """The wheel's tool, or the system's."""
    own = os.path.join(_library.PREFIX, "bin", "climport")
    tool = own if os.path.exists(own) else shutil.which("climport")
    if tool is None:
        sys.exit("climport: this package has no binaries, and there is no climport on the PATH")
    return tool


def _system_has_loader() -> bool:
    try:
        ctypes.CDLL("libOpenCL.so.1")
    except OSError:
        return False
    return True


def _pyopencl_folder() -> Optional[str]:
    spec = importlib.util.find_spec("pyopencl")
    return os.path.dirname(spec.origin) if spec and spec.origin else None


def _use_loader_of_pyopencl() -> None:
    """PyOpenCL's wheel has a loader of its own, which finds PyPI's drivers beside it.  The tool needs it
    by the name libOpenCL.so.1, so a link in the cache leads there."""
    folder = _pyopencl_folder()
    loaders = glob.glob(f"{glob.escape(folder)}/.libs/libOpenCL*") if folder else []
    if not folder or not loaders:
        return
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    links = os.path.join(cache, "climport", "loader")
    new = os.path.join(links, str(os.getpid()))
    with contextlib.suppress(OSError):  # the tool says what is missing
        os.makedirs(links, exist_ok=True)
        os.symlink(loaders[0], new)
        os.replace(new, os.path.join(links, "libOpenCL.so.1"))
        folders = [links, os.path.dirname(loaders[0]), os.environ.get("LD_LIBRARY_PATH")]
        os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
        os.environ["PYOPENCL_HOME"] = folder


def _add_interpreter(arguments: List[str]) -> None:
    """Puts this Python before the program of `run`, if the program is Python's."""
    place = 1
    while place < len(arguments) and arguments[place].startswith("-"):
        place += 2 if arguments[place] == "--version" else 1
    if place < len(arguments) and arguments[place].endswith(".py"):
        arguments.insert(place, sys.executable)


def main() -> NoReturn:
    """Becomes the tool."""
    tool, arguments = _find_tool(), sys.argv[1:]
    if arguments[:1] == ["run"]:
        _add_interpreter(arguments)
    if arguments[:1] in (["info"], ["bench"], ["conform"]) or not _system_has_loader():
        _use_loader_of_pyopencl()
    os.execv(tool, [tool, *arguments])


if __name__ == "__main__":
    main()
