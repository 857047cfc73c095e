"""A run's own step, stopped after each call, module and node: where, with which numbers, and that
the run is the one that was not stopped, bit for bit."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.autograd.graph.engine_run import execution_order
from engine.project.document import Model, TrainingSetup, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    BackwardSnapshot,
    Command,
    ContinueTrainingCommand,
    ErrorSnapshot,
    GraphSnapshot,
    HeldSnapshot,
    OutputSnapshot,
    RunCellCommand,
    RunFileCommand,
    RunHeldCommand,
    StepLineCommand,
    StepTrainingCommand,
    StepUnit,
    TrainCommand,
    TrainingSnapshot,
    VariablesSnapshot,
)
from tests.engine.runs.killed import NAMES, OWN, command_of

from ..test_stepping_phases import SETUP, begin, end
from ..test_training_handlers import MLP, Client, assert_equal

OWN_CASES = {case.name: case for case in OWN}
ACTIVE_STEPS = 2


class Hand(Client):
    """A session whose window answers a step that is held: `answers` gives the next command."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: Callable[[], Command] = lambda: ContinueTrainingCommand()
        self.later: list[Command] = []
        self.session.lab.attend = self._attend

    def _attend(self) -> None:
        command = self.answers()
        if not self.session.handle_held(command):
            self.later.append(command)  # as the mailbox keeps it until the code goes on

    def step(self, by: StepUnit) -> None:
        self.send(StepTrainingCommand(id=2, by=by))
        assert self.last.state != "failed", self.last.error
        while self.later:
            self.send(self.later.pop(0))

    @property
    def places(self) -> list[str]:
        """Where the step was held, in words."""
        numbers = [s.step_numbers for s in self.said if isinstance(s, TrainingSnapshot)]
        return [n.place for n in numbers if n is not None and n.place]

    def type(self, source: str) -> str:
        """What Python prints where the step is held."""
        before = len(self.said)
        assert self.session.handle_held(RunHeldCommand(id=9, source=source))
        return "".join(s.text for s in self.said[before:] if isinstance(s, OutputSnapshot))

    def live(self) -> nn.Module:
        return self.session.lab.run.loop.model  # pyright: ignore[reportOptionalMemberAccess]


@pytest.fixture
def hand() -> Iterator[Hand]:
    hand = Hand()
    yield hand
    hand.session.close()


def by(*units: StepUnit) -> Callable[[], Command]:
    """These units in turn, the last one again and again."""
    left = list(units)
    return lambda: StepTrainingCommand(id=3, by=left.pop(0) if len(left) > 1 else left[0])


def go_on(hand: Hand) -> None:
    hand.send(ContinueTrainingCommand(id=5))
    hand.run_to_end()
    assert hand.last.state == "finished", hand.last.error


@pytest.mark.parametrize("unit", ["op", "module"])
@pytest.mark.parametrize("name", NAMES)
def test_each_template_and_own_module_ends_as_without(hand: Hand, name: str, unit) -> None:
    command, ends = command_of(name), []
    for client in (Client(), hand):
        if name in OWN_CASES:
            client.send(RunFileCommand(id=1, path=str(OWN_CASES[name].path)))
        client.send(replace(command, id=2, fresh=True, paused=True))
        if client is hand:
            hand.answers = by(unit)
            while hand.last.step < ACTIVE_STEPS:
                hand.step(unit)
        client.send(ContinueTrainingCommand(id=4))
        client.run_to_end()
        assert client.last.state == "finished", client.last.error
        model = client.session.lab.run.loop.model  # pyright: ignore
        ends.append({key: value.clone() for key, value in model.state_dict().items()})
    assert any("after node" in place for place in hand.places)
    assert any("which gave" in place for place in hand.places)
    assert_equal(ends[1], ends[0])


@pytest.mark.parametrize(
    "setup",
    [
        replace(SETUP, accumulate=2, clip_norm=0.1),
        replace(SETUP, optimizer="optim.LBFGS", optimizer_params={"lr": 0.1}),
        replace(SETUP, precision="bfloat16"),
        replace(SETUP, recomputed=("linear1", "dropout")),
        replace(SETUP, order=("step", "zero_grad", "forward", "loss", "backward")),
        replace(SETUP, deterministic=True),
    ],
    ids=["accumulate", "LBFGS", "bfloat16", "recomputed", "order", "deterministic"],
)
def test_each_kind_of_step_ends_as_without(hand: Hand, setup: TrainingSetup) -> None:
    begin(hand, setup)
    hand.answers = by("op")
    while hand.last.step < 2:
        hand.step("op")
    assert hand.places
    go_on(hand)
    assert_equal(hand.weights(), end(setup))


def test_it_is_held_after_each_call_and_each_node(hand: Hand) -> None:
    begin(hand)
    hand.answers = by("op")
    while hand.last.step < 1:
        hand.step("op")
    calls = [place for place in hand.places if "which gave" in place]
    assert [place.partition(",")[0] for place in calls] == [
        "after `Tensor.flatten` in `flatten`",
        "after `F.linear` in `linear1`",
        "after `F.relu` in `relu`",
        "after `F.dropout` in `dropout`",
        "after `F.linear` in `linear2`",
        "after `F.cross_entropy` in the loss",
    ]
    assert calls[1].endswith("which gave (512, 64) float32")
    nodes = [place for place in hand.places if "after node" in place]
    total = int(nodes[0].split(" of ")[1].partition(",")[0])
    # The last one ends the phase.
    assert [int(place.split()[2]) for place in nodes] == list(range(1, total))
    assert sum("in `linear1`" in place for place in nodes) >= 3  # weight, bias, addmm
    assert any(isinstance(said, GraphSnapshot) for said in hand.said)


def test_the_variables_and_gradients_there_are_those_of_plain_torch(hand: Hand) -> None:
    begin(hand)
    plain = copy.deepcopy(hand.live())
    seen: dict[str, str] = {}

    def look() -> Command:
        place = hand.places[-1]
        if "`F.relu`" in place:
            seen["hidden"] = hand.type("linear1.double().sum().item()")
        if place.startswith("after node 4 of"):
            grads = "[p.grad is not None for p in model.parameters()]"
            seen["grads"] = hand.type(grads)
            seen["loss"] = hand.type("loss.item()")
        return StepTrainingCommand(id=3, by="op")

    hand.answers = look
    batch = next(iter(hand.session.lab.run.loop.objective.batches(0, 0)))
    while hand.last.step < 1:
        hand.step("op")
    x, y = batch
    hidden = plain.linear1(x.flatten(1))  # pyright: ignore[reportCallIssue]
    assert float(seen["hidden"]) == hidden.detach().double().sum().item()
    assert seen["grads"].count("True") == 1  # the bias of linear2
    assert float(seen["loss"]) > 0
    order = execution_order([F.cross_entropy(plain(x), y)])
    steps = [s for s in hand.said if isinstance(s, BackwardSnapshot)]
    assert max(s.position for s in steps) == len(order)


def test_modules_are_held_at_their_end_in_forward_and_backward(hand: Hand) -> None:
    begin(hand)
    hand.answers = by("module")
    while hand.last.step < 1:
        hand.step("module")
    forward = [place.partition(",")[0] for place in hand.places if "which gave" in place]
    assert forward == [
        *(f"after `{name}`" for name in ("flatten", "linear1", "relu", "dropout", "linear2")),
        "after the model",
    ]
    nodes = [place.rpartition(" in ")[2] for place in hand.places if "after node" in place]
    assert list(dict.fromkeys(n for n in nodes if n.startswith("`"))) == [
        *(f"`{name}`" for name in ("CrossEntropyLoss", "linear2", "dropout", "relu"))
    ]


@pytest.mark.parametrize("is_canvas", [False, True])
def test_behind_a_held_step_the_variables_are_those_of_the_console(
    hand: Hand, is_canvas: bool
) -> None:
    hand.send(RunCellCommand(source="mine = 1"))
    if is_canvas:
        begin(hand)
    else:
        hand.send(RunFileCommand(id=1, path=str(OWN_CASES["vae"].path)))
        hand.send(replace(command_of("vae"), id=2, fresh=True, paused=True))
    told: list[list[bool]] = []
    units: tuple[StepUnit, ...] = ("op", "step")  # the second step is not held
    for step, unit in enumerate(units, 1):
        del hand.said[:-1]
        hand.answers = by("op", "step")
        while hand.last.step < step:
            hand.step(unit)
        lists = [said for said in hand.said if isinstance(said, VariablesSnapshot)]
        told.append(["mine" in {each.name for each in said.variables} for said in lists])
    assert told == [[False, False, True], []]


def test_from_inside_it_goes_on_by_less_and_by_more(hand: Hand) -> None:
    begin(hand)
    hand.answers = by("op", "module", "phase")
    hand.send(StepTrainingCommand(id=2, by="phase"))  # zero_grad
    hand.step("op")
    assert len(hand.places) == 3
    assert hand.last.is_in_step and hand.last.step_numbers is not None
    assert hand.last.step_numbers.done == ("zero_grad", "forward")
    hand.answers = by("step")
    hand.step("op")
    assert (hand.last.step, hand.last.is_in_step) == (1, False)
    held = [s for s in hand.said if isinstance(s, HeldSnapshot)]
    assert held[-1].at == "" and not hand.session.lab.run.loop.by
    hand.answers = ContinueTrainingCommand
    hand.step("phase")
    hand.step("op")
    hand.run_to_end()
    assert hand.last.state == "finished"
    assert_equal(hand.weights(), end())


def test_the_next_line_of_the_canvas_is_held_too(hand: Hand) -> None:
    begin(hand)
    lines: list[int] = []

    def look() -> Command:
        held = [s for s in hand.said if isinstance(s, HeldSnapshot) and s.at][-1]
        lines.append(held.line)
        assert held.file == "the canvas" and "def forward(self, x)" in held.source
        return StepLineCommand(id=3) if len(lines) < 3 else StepTrainingCommand(id=3)

    hand.answers = look
    while hand.last.step < 1:
        hand.step("op")
    assert lines[:3] == sorted(lines[:3]) and len(set(lines[:3])) == 3


def test_behind_the_last_line_of_a_step_of_code_no_line_is_held(hand: Hand) -> None:
    cell = "net = nn.Linear(3, 1)\ndata = (torch.ones(16, 3), torch.ones(16, 1))"
    step = "def step(batch):\n    breakpoint()\n    return model(batch[0]).sum()\n"
    hand.send(RunCellCommand(source=cell))
    command = TrainCommand(
        id=1, model=Model(), training=TrainingSetup(epochs=1, batch_size=16), paused=True,
        subject=ConsoleSubject("net"), objective=Objective(data="data", step=step),
    )  # fmt: skip
    hand.send(command)
    hand.answers = lambda: StepLineCommand(id=3)
    listener = sys.gettrace()
    hand.step("step")
    still = sys.gettrace()
    sys.settrace(listener)
    held = [(s.function, s.line) for s in hand.said if isinstance(s, HeldSnapshot) and s.at]
    assert held == [("step", 2), ("step", 3)]
    assert still is None and hand.last.step == 1


def test_a_weight_that_is_changed_inside_counts_from_there(hand: Hand) -> None:
    begin(hand)
    before = hand.weights()

    def change() -> Command:
        if "`linear1`" in hand.places[-1]:
            hand.type("self.linear2.weight.data.zero_()")
            return StepTrainingCommand(id=3)
        return StepTrainingCommand(id=3, by="module")

    hand.answers = change
    while hand.last.step < 1:
        hand.step("module")
    after = hand.weights()
    # No gradient passes a weight of zeros.
    assert torch.equal(after["linear1.weight"], before["linear1.weight"])
    assert not torch.equal(after["linear2.weight"], before["linear2.weight"])


@pytest.mark.parametrize("place", ["`linear1`", "after node 2"])
def test_back_from_inside_leads_to_the_start_of_the_step(hand: Hand, place: str) -> None:
    begin(hand)
    hand.send(StepTrainingCommand(id=2))
    here = hand.weights()

    def back() -> Command:
        if place in hand.places[-1]:
            return TrainCommand(id=4, model=MLP, training=SETUP, to_step=1)
        return StepTrainingCommand(id=3, by="op")

    hand.answers = back
    while hand.last.reply_to != 4:
        hand.step("op")
    hand.run_to_end()
    assert (hand.last.state, hand.last.step, hand.last.is_in_step) == ("paused", 1, False)
    assert_equal(hand.weights(), here)
    go_on(hand)
    assert_equal(hand.weights(), end())


def test_stop_ends_the_run_from_inside(hand: Hand) -> None:
    begin(hand)

    def stop() -> Command:
        hand.session.lab.control.stop.set()
        return RunHeldCommand(id=3, source="pass")

    hand.answers = stop
    for _ in range(2):
        hand.send(StepTrainingCommand(id=2, by="op"))
    hand.run_to_end()
    assert (hand.last.state, hand.last.step) == ("stopped", 0)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_compiled_model_is_stepped_by_phases_only(
    hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.hub.tqdm, "monitor_interval", 0, raising=False)  # no thread stays
    begin(hand, replace(SETUP, compile=True))
    hand.send(StepTrainingCommand(id=2, by="op"))
    errors = [said.error.message for said in hand.said if isinstance(said, ErrorSnapshot)]
    assert len(errors) == 1 and "nothing stops inside" in errors[0], errors
    assert (hand.last.step, hand.last.is_in_step) == (0, False)


def test_to_the_end_of_the_epoch_and_again(hand: Hand) -> None:
    begin(hand)
    hand.step("epoch")
    hand.run_to_end()
    assert (hand.last.state, hand.last.step) == ("paused", 3)
    rows = [row for s in hand.said if isinstance(s, TrainingSnapshot) for row in s.epoch_rows]
    assert [row.epoch for row in rows] == [1]
    hand.step("phase")
    hand.step("epoch")
    hand.run_to_end()
    assert (hand.last.state, hand.last.step) == ("finished", 6)
    assert_equal(hand.weights(), end())


def test_a_pause_on_the_way_to_the_end_of_the_epoch_is_the_last_word(hand: Hand) -> None:
    begin(hand)
    hand.step("epoch")
    hand.session.advance()
    hand.session.lab.control.pause.set()
    hand.run_to_end()
    step = hand.last.step
    assert hand.last.state == "paused" and step < 3
    go_on(hand)
    assert hand.last.step == 6


def test_from_inside_to_the_end_of_the_epoch(hand: Hand) -> None:
    begin(hand)
    hand.answers = by("epoch")
    for _ in range(2):
        hand.step("op")
    hand.run_to_end()
    assert (hand.last.state, hand.last.step) == ("paused", 3)
    go_on(hand)
    assert_equal(hand.weights(), end())
