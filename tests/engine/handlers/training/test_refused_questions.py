"""Questions that cannot be answered are refused in words, with what to do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from app.templates import load_template
from engine.handlers import flow
from engine.handlers.training import repeating
from engine.handlers.training.pictures import landscape
from engine.protocol import (
    MAX_POINTS_ALONG,
    ChooseWeightsCommand,
    Command,
    ContinueTrainingCommand,
    DerivativeCommand,
    ErrorSnapshot,
    FlowCommand,
    GraphNumbersCommand,
    GraphNumbersSnapshot,
    InspectCommand,
    LandscapeCommand,
    MoveBackwardCommand,
    MoveForwardCommand,
    ReadEntryCommand,
    ReadFlowCommand,
    RunCellCommand,
    RunHeldCommand,
    Snapshot,
    StartBackwardCommand,
    StartForwardCommand,
    StartTraceCommand,
    TraceRootCommand,
    TraceRootSnapshot,
    TrainCommand,
)
from engine.server.session import Session
from engine.system.errors import LabError

MLP = load_template("mlp")
OF_MLP: dict[str, Any] = {"model": MLP.model, "training": MLP.training}
CELL = "x = torch.ones(2, requires_grad=True)\ny = (x * 3).sum()\nn = 4\nnet = nn.Linear(2, 1)"


class Asked:
    def __init__(self) -> None:
        self.told: list[Snapshot] = []
        self.session = Session(self.told.append)
        self.ask(RunCellCommand(source=CELL))

    def ask(self, command: Command) -> Snapshot:
        self.session.handle(command)
        return self.told[-1]

    def refusal(self, command: Command) -> tuple[str, str]:
        answer = self.ask(command)
        assert isinstance(answer, ErrorSnapshot), answer
        return answer.error.message, answer.error.hint


@pytest.fixture
def asked() -> Iterator[Asked]:
    asked = Asked()
    yield asked
    asked.session.close()


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        (RunHeldCommand(source="1"), "The code goes on: nothing is held.", "Run this as a cell."),
        (ContinueTrainingCommand(), "There is no paused run.", "Start training first."),
        (ReadEntryCommand(row=0, column=0), "There is no matrix to read.", "Compute a Jacobian"),
        (
            DerivativeCommand(kind="jacobian", function="n", inputs=("x",)),
            "`n` is int: it cannot be called.",
            "Give a function",
        ),
        (
            DerivativeCommand(kind="jacobian", function="torch.tanh"),
            "No input is given.",
            "Give the function's tensors",
        ),
        (
            DerivativeCommand(kind="jacobian", function="torch.tanh", inputs=(" n ",)),
            "`n` is int, not a tensor.",
            "Give tensors",
        ),
        (
            DerivativeCommand(kind="jacobian", function="lambda t: 1 / 0", inputs=("x",)),
            "The function fails: ZeroDivisionError: division by zero",
            "",
        ),
        (
            DerivativeCommand(kind="vjp", function="torch.tanh", inputs=("x",), vector=" n "),
            "`n` is int, not a tensor.",
            "",
        ),
        (
            ReadFlowCommand(layer="a", step=0),
            "There is no gradient flow to look at.",
            "Press Run first.",
        ),
        (
            TraceRootCommand(position=0),
            "There is no call 0 in the trace.",
            "The trace has 0 calls.",
        ),
        (
            ChooseWeightsCommand(which="last"),
            "No run has ended whose weights could be loaded.",
            "Train first.",
        ),
        (
            InspectCommand(of="parameter", key="w"),
            "There is no model yet.",
            "Start a forward pass.",
        ),
        (
            TrainCommand(**OF_MLP, to_step=1),
            "There is no run to go back in.",
            "Train first.",
        ),
    ],
)
def test_a_question_about_nothing_is_refused(
    asked: Asked, command: Command, message: str, hint: str
) -> None:
    told, way = asked.refusal(command)
    assert told == message and way.startswith(hint) and bool(way) == bool(hint)


def test_numbers_of_no_graph_are_none_at_all(asked: Asked) -> None:
    asked.told.clear()
    asked.session.handle(GraphNumbersCommand(nodes=(0,)))
    assert asked.told == []
    asked.ask(StartBackwardCommand(root="y"))
    assert isinstance(asked.ask(GraphNumbersCommand(nodes=(0,))), GraphNumbersSnapshot)


def test_values_of_a_model_are_refused_by_their_names(asked: Asked) -> None:
    asked.ask(StartForwardCommand(**OF_MLP))
    block = MLP.model.blocks[1].id
    told = asked.refusal(InspectCommand(of="activation", key=block))
    assert told == ("This block has not run in the current pass.", "Step forward until it has.")
    asked.ask(MoveForwardCommand(move="end"))
    assert not isinstance(asked.ask(InspectCommand(of="activation", key=block)), ErrorSnapshot)
    message, hint = asked.refusal(InspectCommand(of="parameter", key="w"))
    assert message == "The model has no parameter 'w'."
    assert hint.startswith("It has: linear1.weight, linear1.bias, ")
    message, hint = asked.refusal(InspectCommand(of="gradient", key="linear1.bias"))
    assert message == "linear1.bias has no gradient yet."
    assert hint == "Step backward until its leaf has run."


def test_a_gradient_of_a_gradient_is_of_a_row_that_is_there(asked: Asked) -> None:
    asked.ask(StartBackwardCommand(root="y"))
    told = asked.refusal(StartBackwardCommand(of="w"))
    assert told == (
        "The pass under way has no gradient for `w`.", "Choose a row of the gradients.",
    )  # fmt: skip


def test_nothing_runs_inside_a_leaf(asked: Asked) -> None:
    asked.ask(StartBackwardCommand(root="y"))
    asked.ask(MoveBackwardCommand(move="run"))
    nodes = asked.session.lab.backward.require().stepper.graph.nodes
    leaf = next(node.id for node in nodes if node.is_leaf)
    message, hint = asked.refusal(StartTraceCommand(node=leaf))
    assert message == "Nothing runs inside a leaf: the gradient is added to its .grad."
    assert hint == "Choose a node that computes."


def test_a_call_of_the_trace_leads_to_a_variable_or_says_that_none_is_left(asked: Asked) -> None:
    asked.ask(StartTraceCommand(source="h = x * 2\nz = h.exp().sum()"))
    calls = asked.session.lab.trace.current.recording.calls  # type: ignore[union-attr]
    count = len(calls)
    message, hint = asked.refusal(TraceRootCommand(position=count))
    assert message == f"There is no call {count} in the trace."
    assert hint == f"The trace has {count} calls."
    assert asked.refusal(TraceRootCommand(position=-1))[1] == hint
    found = [asked.ask(TraceRootCommand(position=place)) for place in range(count)]
    roots = {each.root for each in found if isinstance(each, TraceRootSnapshot)}
    assert "z" in roots
    for each in found:
        assert isinstance(each, TraceRootSnapshot)
        assert (each.note == "") == bool(each.root)


def test_a_flow_has_no_more_cells_than_can_be_shown_and_names_what_is_not_there(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = FlowCommand(**OF_MLP, steps=2, initialisations=("default",))
    asked.ask(command)
    layers = next(iter(asked.session.lab.derivatives.flow.values())).layers
    for layer, step in ((layers[0], 2), (layers[0], -1), ("other", 0)):
        message, _ = asked.refusal(ReadFlowCommand(layer=layer, step=step))
        assert message == f"There is no step {step} of a layer {layer!r}."
    rows = len(layers)
    monkeypatch.setattr(flow, "MAX_CELLS", 2 * rows)
    assert not isinstance(asked.ask(command), ErrorSnapshot)
    monkeypatch.setattr(flow, "MAX_CELLS", 2 * rows - 1)
    message, hint = asked.refusal(command)
    assert message == f"2 steps of {rows} layers are more than can be shown."
    assert hint == "Ask for at most 1 steps."


@pytest.mark.parametrize(
    ("fields", "message", "hint"),
    [
        ({"points": 2}, "A direction cannot have 2 points.", f"Give 3 to {MAX_POINTS_ALONG}."),
        (
            {"points": MAX_POINTS_ALONG + 1},
            f"A direction cannot have {MAX_POINTS_ALONG + 1} points.",
            f"Give 3 to {MAX_POINTS_ALONG}.",
        ),
        ({"span": 0.0}, "The slice cannot reach to 0.0.", "1 is usual."),
        ({"span": math.inf}, "The slice cannot reach to inf.", "1 is usual."),
        ({"span": math.nan}, "The slice cannot reach to nan.", "1 is usual."),
        ({"batches": 0}, "The loss needs one batch at least.", "Give 1 or more."),
    ],
)
def test_a_grid_that_cannot_be_had_is_refused(fields: dict, message: str, hint: str) -> None:
    with pytest.raises(LabError) as raised:
        landscape._check(LandscapeCommand(**OF_MLP, **fields))
    assert (str(raised.value), raised.value.hint) == (message, hint)


@pytest.mark.parametrize("points", [3, MAX_POINTS_ALONG])
def test_a_grid_that_can_be_had_is_not(points: int) -> None:
    landscape._check(LandscapeCommand(**OF_MLP, points=points, span=1e-9, batches=1))


def test_a_run_of_other_processes_or_of_another_model_is_not_gone_back_in(asked: Asked) -> None:
    lab = asked.session.lab
    command = TrainCommand(**OF_MLP)
    lab.run = SimpleNamespace()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(LabError, match="several processes does not go to one of its steps"):
        repeating.last_run(lab, nn.ReLU(), command)
    lab.run = None
    asked.ask(TrainCommand(id=5, **OF_MLP, paused=True))
    with pytest.raises(LabError, match="trained another model") as refused:
        repeating.last_run(lab, nn.ReLU(), command)
    assert refused.value.hint == "Undo the change, or train again."
    run: Any = lab.run
    assert repeating.last_run(lab, run.loop.model, command) is run
