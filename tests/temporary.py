# SPDX-License-Identifier: Apache-2.0
"""A folder for a script's files.  The folder is gone when the script has ended, by a signal, too."""
import contextlib
import os
import signal
import tempfile

STOPS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """A signal came.  No handler of errors takes it for one."""


def stop(number, _frame):
    raise Stopped(number)


@contextlib.contextmanager
def folder():
    """Gives the folder's path.  A script that a signal ends has the signal's exit status."""
    before = {number: signal.signal(number, stop) for number in STOPS}
    try:
        with tempfile.TemporaryDirectory() as path:
            yield path
    except Stopped as stopped:
        signal.signal(stopped.args[0], signal.SIG_DFL)
        os.kill(os.getpid(), stopped.args[0])
    for number, handler in before.items():
        signal.signal(number, handler)
