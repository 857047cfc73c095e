"""How often the program goes from one room to another for a step and for a cell.

A move is a call of a function of one room by a function of another, through whatever library lies
between them; a room is a folder right under `app`, `engine` or `widgets`. What is painted later
does not count.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from app import templates
from app.application import Application
from engine.protocol import ReadValuesCommand, RunCellCommand, StatisticsCommand

ROOT = Path(__file__).parents[3]


@cache
def room_of(file: str) -> str:
    """ "" for a file that is not the program's."""
    path = Path(file)
    parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else ()
    return "/".join(parts[:-1][:2]) if parts and parts[0] in ("app", "engine", "widgets") else ""


@contextmanager
def moves() -> Iterator[Counter[tuple[str, str]]]:
    """Counts the moves by the functions that are left and entered."""
    counted: Counter[tuple[str, str]] = Counter()

    def see(frame: FrameType, event: str, _: object) -> None:
        here = room_of(frame.f_code.co_filename)
        # Once a test has opened a Python file, imports in any function pass through this one.
        if event != "call" or not here or frame.f_code.co_name == "import_for_module":
            return
        caller = frame.f_back
        while caller is not None and not room_of(caller.f_code.co_filename):
            caller = caller.f_back
        if caller is not None and (there := room_of(caller.f_code.co_filename)) != here:
            names = caller.f_code.co_qualname, frame.f_code.co_qualname
            counted[f"{there}: {names[0]}", f"{here}: {names[1]}"] += 1

    sys.setprofile(see)
    try:
        yield counted
    finally:
        sys.setprofile(None)


def counted_for(program: Application, act: Callable[[], object]) -> Counter[tuple[str, str]]:
    with moves() as counted:
        act()
        program.bench.link.drain()
    print(f"{counted.total()} moves:", *counted.most_common(100), sep="\n")
    return counted


@pytest.fixture
def mlp(program: Application) -> Application:
    """With all pages made."""
    program.bench.files.new(templates.load_template("mlp"))
    for workspace in ("model", "tensors", "train", "autograd"):
        program.window.show_workspace(workspace)
        program.bench.link.drain()
    return program


def test_a_step_moves_little(mlp, qtbot):
    steps = mlp.window.page("autograd").steps
    steps.forward.start_requested.emit(0)
    mlp.bench.link.drain()
    counted_for(mlp, lambda: steps.forward.move_requested.emit("step", ""))  # what is kept later
    counted = counted_for(mlp, lambda: steps.forward.move_requested.emit("step", ""))
    assert counted.total() <= 190
    steps.backward.start_requested.emit()
    mlp.bench.link.drain()
    qtbot.waitUntil(lambda: steps.graph.laid_out, timeout=30_000)
    for move in ("end", "back", "back", "step"):  # the cards of a step are made once
        counted = counted_for(mlp, lambda: steps.backward.move_requested.emit(move, -1))  # noqa: B023
    assert counted.total() <= 240


def test_a_cell_moves_little_and_asks_for_what_is_in_front_alone(mlp, monkeypatch):
    mlp.window.show_workspace("tensors")
    mlp.bench.link.drain()
    console, link = mlp.window.page("tensors").console, mlp.bench.link
    sent: list[type] = []
    send = link.send
    monkeypatch.setattr(
        link, "send", lambda command: (sent.append(type(command)), send(command))[1]
    )
    for source in ("import torch\nx = torch.ones(3, 2)", "y = x.T"):
        sent.clear()
        counted = counted_for(mlp, lambda: console.run_requested.emit(source, ""))  # noqa: B023
        assert sent == [RunCellCommand, ReadValuesCommand, StatisticsCommand]
    assert counted.total() <= 500
