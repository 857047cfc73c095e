"""What was done in passes as a script: it runs by itself, and the same bits come into `.grad`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.lab import Lab
from engine.protocol import (
    EditGradientCommand,
    MoveBackwardCommand,
    StartBackwardCommand,
)
from engine.session import handler_of
from engine.tensors.namespace import namespace_of
from tests.engine.autograd import backward_cases as cases
from tests.engine.autograd.script_runs import exported, run_here, same
from tests.engine.autograd.test_autograd_roots import ask, console

LABS: list[Lab] = []
FOLDER = Path()

pytestmark = pytest.mark.filterwarnings("ignore:.*create_graph=True.*:UserWarning")


@pytest.fixture(autouse=True)
def no_engine_stays_held(tmp_path_factory: pytest.TempPathFactory) -> Any:
    global FOLDER
    FOLDER = tmp_path_factory.mktemp("script")
    yield
    while LABS:
        LABS.pop().end_backward()


def made(*cells: str) -> Lab:
    LABS.append(console(*cells))
    return LABS[-1]


def send(lab: Lab, command: Any) -> Any:
    return ask(handler_of(type(command).__name__)(lab, command))[-1]


def start(lab: Lab, **options: Any) -> Any:
    return send(lab, StartBackwardCommand(**options))


def move(lab: Lab, where: Any, target: int = -1) -> Any:
    return send(lab, MoveBackwardCommand(move=where, target=target))


def edit(lab: Lab, name: str, expression: str, output: int = 0) -> None:
    """Edit what comes in at the first node of that name."""
    node = next(n for n in lab.backward.stepper.plan if n.name == name or n.label == name)
    send(lab, EditGradientCommand(node=node.id, expression=expression, output=output))


def value(lab: Lab, expression: str) -> Any:
    return eval(expression, namespace_of(lab).variables)


def check(lab: Lab, *expressions: str) -> str:
    """The script leaves the same in these as the session has, and is returned."""
    path = FOLDER / "backward.py"
    text = exported(lab, path).text
    found = run_here(text, path)
    for expression in expressions:
        assert same(eval(expression, found), value(lab, expression)), f"{expression}\n{text}"
    return text


# -- graphs of all kinds ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*(Sparse invariant|sparse gradient).*:UserWarning")
@pytest.mark.parametrize("name", cases.CASES)
def test_a_script_repeats_two_passes_with_edits_over_any_graph(name: str) -> None:
    lab = made(
        "from tests.engine.autograd.backward_cases import CASES",
        f"roots, compared = CASES[{name!r}]()",
    )
    count = len(value(lab, "roots"))
    start(lab, root=", ".join(f"roots[{i}]" for i in range(count)))
    editable = [n for n in lab.backward.stepper.plan if len(n.outputs) == 1]
    for node in (editable[len(editable) // 2], editable[-1]):
        send(lab, EditGradientCommand(node=node.id, expression="g if g is None else g * 1.5"))
    move(lab, "end")
    move(lab, "again")
    move(lab, "end")
    compared = [f"compared[{i}].grad" for i in range(len(value(lab, "compared")))]
    check(lab, *compared)
