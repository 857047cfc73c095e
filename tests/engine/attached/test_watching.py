"""A script without a window: errors of ours are told once, and a step calls little; and a window
that comes in the moment in which the last one leaves."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest
import torch

from engine.attached import watching as watching_module
from engine.attached.watching import Watching
from engine.connecting.places import is_listening, listening
from engine.loops.hooks import Gate
from engine.loops.step_losses import StepLosses


def test_an_error_in_finding_models_is_told_once_and_the_step_goes_on(
    sockets: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> None:
        raise ValueError("a fault of ours")

    monkeypatch.setattr(watching_module, "found_for", fail)
    watching = Watching("train.py", "1")
    watching.discover()
    try:
        for _ in range(2):
            weight = torch.ones(1, requires_grad=True)
            sgd = torch.optim.SGD([weight], lr=0.5)
            weight.sum().backward()
            sgd.step()
            assert weight.item() == 0.5
    finally:
        watching.close()
    assert [record.message for record in caplog.records] == ["tensorlab.watch: a fault of ours"]


def test_the_end_of_a_session_does_not_take_the_next_one_away() -> None:
    first, second = cast("Any", object()), cast("Any", object())
    watching = Watching.__new__(Watching)
    watching.session = first
    watching._gate, watching._losses = Gate(), StepLosses()
    watching._attaching, watching._attached = threading.Lock(), threading.Event()
    watching._attached.set()
    with watching._attaching:  # a window is coming
        ending = threading.Thread(target=watching._ended, args=(first,))
        ending.start()
        ending.join(0.2)
        assert watching.session is first
        watching.session = second
    ending.join()
    assert watching.session is second
    assert watching.wait(0)
    assert not watching._gate.is_shut
    watching._ended(second)
    assert watching.session is None
    assert watching._gate.is_shut
    assert not watching.wait(0)


def test_without_a_window_a_step_calls_two_functions_and_backward_none(sockets: Path) -> None:
    """What each function costs after a step of torch is most of what `watch` costs. The first step
    finds out that there is no window."""
    called: list[str] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and "/engine/" in frame.f_code.co_filename:
            called.append(frame.f_code.co_name)

    p = torch.nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([p])
    watching = Watching("test", "1")
    try:
        optimizer.step()
        loss = p * 2
        sys.setprofile(profile)
        loss.backward()
        optimizer.step()
    finally:
        sys.setprofile(None)
        watching.close()
    # Where earlier tests opened Python files, torch's import statements pass through this.
    assert [name for name in called if name != "import_for_module"] == ["before", "after"]


def test_a_process_listens_until_it_is_watched_no_more(sockets: Path) -> None:
    watching = Watching("train.py", "1")
    address = watching.listener.address
    assert [place.about for place in listening()] == [watching.about]
    assert watching.about.pid == os.getpid() and is_listening("train.py")
    watching.close()
    assert listening() == [] and not Path(address).exists()
    watching = Watching("again.py", "1")  # torch's functions are free for another
    watching.close()
