"""The job object of Windows, over a kernel32 that keeps what it is called with."""

from __future__ import annotations

import ctypes
import sys

import pytest

from engine.process import job_object
from engine.process.job_object import JobObject


class Kernel32:
    """Each function is a mock of that of Windows; those named in `refuses` return 0."""

    def __init__(self, *refuses: str) -> None:
        self.called: list[tuple] = []

        def function(name: str, answer: int):
            def call(*arguments: object) -> int:
                self.called.append((name, *arguments))
                return 0 if name in refuses else answer

            return call

        self.CreateJobObjectW = function("create", 77)
        self.SetInformationJobObject = function("limit", 1)
        self.AssignProcessToJobObject = function("take", 1)
        self.CloseHandle = function("close", 1)


def test_a_process_is_put_into_a_job_that_ends_with_its_last_handle():
    kernel32 = Kernel32()
    job = JobObject(kernel32)
    job.take(5)
    job.close()
    create, limit, take, close = kernel32.called
    assert create == ("create", None, None)
    _, handle, kind, limits, size = limit
    assert (handle.value, kind.value, size.value) == (77, 9, 144)  # as in winnt.h, of 64 bits
    assert limits._obj.basic.flags == 0x2000
    assert type(limits._obj).basic.size == 64 and type(limits._obj.basic).flags.offset == 16
    assert [argument.value for argument in take[1:]] == [77, 5]
    assert close[0] == "close" and close[1].value == 77


@pytest.mark.parametrize("refused", ["create", "limit", "take"])
def test_what_the_system_refuses_is_an_error(refused):
    with pytest.raises(OSError, match="job object"):
        JobObject(Kernel32(refused)).take(5)


def test_only_windows_has_one(monkeypatch):
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: Kernel32(), raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    assert isinstance(job_object.job_object(), JobObject)
    monkeypatch.setattr(sys, "platform", "linux")
    assert job_object.job_object() is None
