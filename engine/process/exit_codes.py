"""The exit code of a process that is no child of this one, where the system tells it."""

from __future__ import annotations

import os
import struct
import sys
import time
import weakref
from contextlib import suppress
from pathlib import Path

_ASK = 0xC040FF0B
"""PIDFD_GET_INFO of linux/pidfd.h, for the first 64 bytes of its answer."""
_EXIT = 1 << 3
"""PIDFD_INFO_EXIT: how the process ended is wanted, or told. Since Linux 6.15."""
_MASK, _STATUS = struct.Struct("=Q"), struct.Struct("=i")
_STATUS_AT = 60
_LOOK_S = 0.02


class ExitCode:
    """The end of a process of this machine. Another process that gets the same number later is not
    taken for it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descriptor = -1
        if sys.platform == "linux" and hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self._descriptor = os.pidfd_open(pid)
                weakref.finalize(self, os.close, self._descriptor)

    def wait(self, timeout_s: float) -> int | None:
        """The exit code, or minus the number of the signal that ended it; None if it has not ended
        in time, or the system does not tell."""
        deadline = time.monotonic() + timeout_s
        while (code := self.read()) is None and self._may_tell():
            if time.monotonic() > deadline:
                break
            time.sleep(_LOOK_S)
        return code

    def read(self) -> int | None:
        status = self._reaped_status()
        if status is None:
            status = self._zombie_status()
        return None if status is None else os.waitstatus_to_exitcode(status)

    def _may_tell(self) -> bool:
        """Whether a later look may know more."""
        return self._ask() is not None or Path(f"/proc/{self._pid}").exists()

    def _ask(self) -> bytes | None:
        """The exit code from the system; None if it does not answer."""
        if self._descriptor < 0:
            return None
        from fcntl import ioctl

        asked = bytearray(64)
        _MASK.pack_into(asked, 0, _EXIT)
        with suppress(OSError):
            ioctl(self._descriptor, _ASK, asked)
            return bytes(asked)
        return None

    def _reaped_status(self) -> int | None:
        """The exit status as the system tells it after the parent has waited for the process."""
        told = self._ask()
        if told is None or not _MASK.unpack_from(told)[0] & _EXIT:
            return None
        return _STATUS.unpack_from(told, _STATUS_AT)[0]

    def _zombie_status(self) -> int | None:
        """The exit status of a process for which its parent has not waited yet."""
        with suppress(OSError, ValueError, IndexError):
            told = Path(f"/proc/{self._pid}/stat").read_text(errors="replace")
            state, *fields = told.rpartition(")")[2].split()
            return int(fields[-1]) if state == "Z" else None
        return None
