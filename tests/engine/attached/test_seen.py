"""What an attached loop logs, and the modules that it runs, where one looks at them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from engine.attached.figures import Found, LoggedFigures
from engine.attached.modules import SeenModules


class Lab:
    """Keeps what is logged: the step and the figures."""

    def __init__(self) -> None:
        self.told: list[tuple[int | None, dict[str, Any]]] = []
        self.logged: dict[str, torch.Tensor] = {}

    def add(self, figures: dict[str, Any], step: int | None) -> int:
        if figures:
            self.told.append((step, dict(figures)))
        return 0


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def figures(lab: Lab) -> LoggedFigures:
    return LoggedFigures(lab)  # pyright: ignore[reportArgumentType]


def test_a_number_that_is_logged_in_every_step_is_read_only_where_one_looks(lab, figures) -> None:
    for steps in range(1, 5):
        figures.add({"each": 0.5, "seldom": 1.0} if steps in (1, 4) else {"each": 0.5},
                    steps, None, is_looked_at=steps == 3)  # fmt: skip
    assert lab.told == [
        (None, {"each": 0.5, "seldom": 1.0}), (None, {"each": 0.5}), (None, {"seldom": 1.0}),
    ]  # fmt: skip
    lab.told.clear()
    figures.add({"each": torch.ones(3)}, 5, 7, is_looked_at=False)  # no number: a look of its own
    ((step, found),) = lab.told
    assert step == 7 and found["each"].shape == (3,)


def test_the_newest_tensors_are_those_of_now(lab: Lab, figures: LoggedFigures) -> None:
    newest = Found(figures.newest)
    assert list(newest) == [] and len(newest) == 0
    lab.logged = {"x": torch.ones(2)}
    assert list(newest) == ["x"] and len(newest) == 1 and newest["x"] is lab.logged["x"]
    with pytest.raises(KeyError):
        newest["y"]


# -- modules -------------------------------------------------------------------------------------


class Control:
    steps_backward = False

    def pauses_by(self, step: int) -> bool:
        return step == 7


class Recorder:
    recording = object()

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self) -> None:
        self.calls.append("begin")

    def end(self) -> None:
        self.calls.append("end")


@pytest.fixture
def seen() -> SeenModules:
    net = nn.Linear(1, 1)
    namespace = SimpleNamespace(recordings=SimpleNamespace(running=None))
    found = SeenModules(namespace, Control(), lambda: {"x": 1, "net": net}, lambda: False)  # pyright: ignore
    found._recorder = Recorder()  # pyright: ignore[reportAttributeAccessIssue]
    found.net = net  # pyright: ignore[reportAttributeAccessIssue]
    return found


def test_modules_are_recorded_in_the_steps_that_are_looked_at(seen: Any) -> None:
    recordings = seen._namespace.recordings

    def begun(step: int) -> list[str]:
        seen._recorder.calls.clear()
        seen.begin_step(step)
        assert (recordings.running is not None) == (seen._recorder.calls == ["begin"])
        return list(seen._recorder.calls)

    assert begun(6) == []
    assert begun(7) == ["begin"] and recordings.running is Recorder.recording
    assert begun(8) == ["end"] and begun(9) == []
    seen.are_wanted = True
    assert begun(10) == ["begin"]
    seen.are_wanted, seen._control.steps_backward = False, True
    assert begun(11) == ["begin"]
    seen.end()
    assert recordings.running is None and seen._recorder.calls[-1] == "end"


def test_a_module_has_the_name_that_the_user_gave_it(seen: Any) -> None:
    assert (seen._name_of(seen.net), seen._name_of(nn.Linear(1, 1))) == ("net", "")
