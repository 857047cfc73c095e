"""On Windows: a job object, which ends the engine and all that it started with its window.

The system kills the processes of a job when the last handle of it is closed, also when its holder
dies.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

_EXTENDED_LIMITS = 9
_KILL_ON_JOB_CLOSE = 0x2000
"""From winnt.h."""


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("process_time", c_int64),
        ("job_time", c_int64),
        ("flags", c_uint32),
        ("least_working_set", c_size_t),
        ("most_working_set", c_size_t),
        ("processes", c_uint32),
        ("affinity", c_size_t),
        ("priority", c_uint32),
        ("scheduling", c_uint32),
    )


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (("basic", _BasicLimits), ("io", c_uint64 * 6), ("memory", c_size_t * 4))


class JobObject:
    """`kernel32` is that library, as ctypes loads it. Raises OSError if the system refuses."""

    def __init__(self, kernel32: Any) -> None:
        self._kernel32 = kernel32
        kernel32.CreateJobObjectW.restype = c_void_p
        self._job = c_void_p(kernel32.CreateJobObjectW(None, None))
        limits = _Limits()
        limits.basic.flags = _KILL_ON_JOB_CLOSE
        size = c_uint32(ctypes.sizeof(limits))
        _check(
            self._job.value
            and kernel32.SetInformationJobObject(
                self._job, c_uint32(_EXTENDED_LIMITS), ctypes.byref(limits), size
            ),
            "no job object can be made",
        )

    def take(self, process_handle: int) -> None:
        """Put a process into the job; what it starts belongs to the job too. Raises OSError."""
        put = self._kernel32.AssignProcessToJobObject(self._job, c_void_p(process_handle))
        _check(put, "the engine cannot be put into a job object")

    def close(self) -> None:
        """End all processes of the job."""
        self._kernel32.CloseHandle(self._job)


def job_object() -> JobObject | None:
    """A new job object; None on systems that have none."""
    if sys.platform != "win32":
        return None
    return JobObject(ctypes.WinDLL("kernel32"))


def _check(worked: object, otherwise: str) -> None:
    if not worked:
        raise OSError(otherwise)
