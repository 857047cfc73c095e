"""Code that is held in this very process: where it stands, what is sent, and how it goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.lab import Lab
from engine.lab.holding import Holder, loop_looks, seen_and_held, watching_of
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    BackwardSnapshot,
    CellSnapshot,
    FindingSnapshot,
    GraphSnapshot,
    HeldSnapshot,
    OutputSnapshot,
    RecordCommand,
    RunCellCommand,
    RunHeldCommand,
    Snapshot,
    VariablesSnapshot,
)
from engine.server.session import handler_of
from engine.system.control import Control


class Desk:
    """A lab whose code is held: each time, the next of `turns` says how it goes on."""

    def __init__(self) -> None:
        self.told: list[Snapshot] = []
        self.lab = Lab(emit=self.told.append)
        self.lab.attend = self._attend
        self.turns: list[Callable[[], object] | str] = []
        self.held = 0

    @property
    def control(self) -> Control:
        return self.lab.control

    def _attend(self) -> None:
        self.held += 1
        turn = self.turns.pop(0) if self.turns else "on"
        how = turn if isinstance(turn, str) else turn()
        self.control.goes_on = how if isinstance(how, str) else "on"  # type: ignore[assignment]

    def run(self, source: str) -> CellSnapshot:
        self.told.clear()
        self.held = 0
        command = RunCellCommand(source=source)
        answers = [s for s in handler_of(RunCellCommand)(self.lab, command) if s is not None]
        assert isinstance(answers[-1], CellSnapshot)
        return answers[-1]

    def places(self) -> list[tuple[str, int]]:
        return [(s.at, s.line) for s in self.told if isinstance(s, HeldSnapshot)]

    def value(self, name: str) -> Any:
        return self.lab.console.namespace.variables[name]

    def text(self) -> str:
        return "".join(s.text for s in self.told if isinstance(s, OutputSnapshot))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_breakpoint_is_told_with_its_variables_and_its_end(desk: Desk) -> None:
    seen: list[Any] = []

    def look() -> None:
        held = desk.lab.console.held
        assert held is not None
        seen.append(held[0].namespace.variables["x"])
        command = RunHeldCommand(source="print(x + 1); x = 7")
        told = list(handler_of(RunHeldCommand)(desk.lab, command))
        assert isinstance(told[0], VariablesSnapshot) and told[-1].ok  # type: ignore[union-attr]
        assert "2\n" in desk.text()

    desk.turns = [look]
    assert desk.run("x = 1\nbreakpoint()\ny = x + 1").ok
    assert [type(s) for s in desk.told if not isinstance(s, OutputSnapshot)] == [
        HeldSnapshot, VariablesSnapshot, HeldSnapshot,
    ]  # fmt: skip
    assert desk.places() == [("line", 2), ("", 0)] and seen == [1] and desk.value("y") == 8
    assert desk.lab.console.held is None and not desk.lab.control.in_own_code


def test_line_by_line_each_next_line_is_held_once_until_it_goes_on(desk: Desk) -> None:
    desk.turns = ["line", "line", "on"]
    assert desk.run("x = 1\nbreakpoint()\ny = 2\nz = 3\nw = 4").ok
    assert desk.places() == [(at, n) for n in (2, 3, 4) for at, n in (("line", n), ("", 0))]
    assert desk.held == 3 and desk.value("w") == 4


def test_without_anyone_who_attends_nothing_is_held(desk: Desk) -> None:
    desk.lab.attend = None
    desk.control.steps_backward = True
    assert desk.run("w = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()").ok
    assert desk.places() == [] and desk.value("w").grad.tolist() == [2.0, 2.0]


def test_code_typed_while_it_is_held_is_not_held(desk: Desk) -> None:
    def type_breakpoint() -> None:
        command = RunHeldCommand(source="breakpoint(); typed = 1")
        told = list(handler_of(RunHeldCommand)(desk.lab, command))
        assert told[-1].ok  # type: ignore[union-attr]

    desk.turns = [type_breakpoint]
    assert desk.run("breakpoint()\nz = 3").ok
    assert desk.held == 1 and desk.value("typed") == 1


BACKWARD = "w = torch.tensor([1.0, 2.0], requires_grad=True)\nloss = (w * w).sum()\n"


def test_a_call_of_backward_is_told_as_a_pass_and_does_what_torch_does(desk: Desk) -> None:
    desk.control.steps_backward = True
    desk.turns = [lambda: desk.told.append(desk.lab.backward.require().snapshot())]
    assert desk.run(BACKWARD + "loss.backward()\nafter = w.grad.tolist()").ok
    assert desk.value("after") == [2.0, 4.0] and desk.places() == [("backward", 3), ("", 0)]
    passes = [s for s in desk.told if isinstance(s, BackwardSnapshot)]
    assert [s.position for s in passes][:2] == [0, 0] and passes[-1].position > 2
    assert [g.gradient is not None for g in passes[-1].gradients] == [True]
    assert any(isinstance(s, GraphSnapshot) for s in desk.told)
    assert desk.lab.backward.under_way is None


@pytest.mark.parametrize(
    ("call", "works_again"),
    [
        ("loss.backward()", False),
        ("loss.backward(retain_graph=False)", False),
        ("loss.backward(retain_graph=True)", True),
        ("loss.backward(create_graph=True)", True),
        ("loss.backward(create_graph=True, retain_graph=False)", False),
        ("torch.autograd.backward([loss], [torch.tensor(2.0)])", False),
    ],
)
@pytest.mark.filterwarnings("ignore:Using backward.*create_graph:UserWarning")
def test_the_graph_is_freed_as_torch_frees_it(desk: Desk, call: str, works_again: bool) -> None:
    desk.control.steps_backward = True
    assert desk.run(f"{BACKWARD}{call}").ok
    graph = desk.value("w").grad.requires_grad
    assert graph is ("create_graph" in call)
    desk.control.steps_backward = False
    again = desk.run("loss.backward()")
    assert again.ok is works_again
    assert again.ok or "second time" in again.error.message  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("loss.backward(inputs=[w])", "backward(inputs=…) is not stepped"),
        ("(w * w).backward()", "backward() cannot be stepped: "),
    ],
)
def test_what_is_not_stepped_runs_at_once_and_says_so(desk: Desk, line: str, words: str) -> None:
    desk.control.steps_backward = True
    end = desk.run(BACKWARD + line)
    assert end.ok is ("inputs" in line)
    assert f"Line 3 of cell 1: {words}" in desk.text() and "It runs at once." in desk.text()
    assert (desk.held, desk.lab.backward.under_way) == (0, None)
    if end.ok:
        assert desk.value("w").grad.tolist() == [2.0, 4.0] and desk.places() == []


def test_an_edit_that_fails_is_taken_back_and_the_code_is_held_on(desk: Desk) -> None:
    desk.control.steps_backward = True

    def edit() -> None:
        backward = desk.lab.backward.require()
        node = next(n for n in backward.stepper.plan if n.name.startswith("Mul"))
        backward.control.edit(node.id, "g / undefined_name")

    def nothing() -> None:
        stopped = [s for s in desk.told if isinstance(s, BackwardSnapshot)][-1]
        assert "is taken back" in stopped.stopped_by and "MulBackward0" in stopped.stopped_by

    desk.turns = [edit, nothing]
    end = desk.run(BACKWARD + "loss.backward()\nafter = w.grad.tolist()")
    assert end.ok and desk.held == 2 and desk.value("after") == [2.0, 4.0]


def test_what_a_node_of_the_users_raises_is_the_errors_own(desk: Desk) -> None:
    desk.control.steps_backward = True
    end = desk.run(
        BACKWARD + "def fail(g):\n    raise ValueError('mine')\nh = w * 2\nh.register_hook(fail)\n"
        "h.sum().backward()"
    )
    assert not end.ok and end.error is not None
    assert (end.error.type, end.error.message) == ("ValueError", "mine")
    assert desk.places()[-1] == ("", 0) and desk.lab.backward.under_way is None


def test_after_backward_the_next_line_is_held_if_it_is_wanted(desk: Desk) -> None:
    desk.control.steps_backward = True
    desk.turns = ["line", "on"]
    assert desk.run(BACKWARD + "loss.backward()\nx = 1\ny = 2").ok
    assert [place for place in desk.places() if place[0]] == [("backward", 3), ("line", 4)]


def test_findings_are_told_where_cells_are_recorded(desk: Desk) -> None:
    loop = (
        "net = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
        "for _ in range(4):\n    net(torch.ones(3, 2)).sum().backward()\n    opt.step()\n"
    )
    for on in (True, False):
        list(handler_of(RecordCommand)(desk.lab, RecordCommand(on=on)))
        assert desk.run(loop).ok
        found = [s.finding for s in desk.told if isinstance(s, FindingSnapshot)]
        assert bool(found) is on  # gradients are never set to zero


def test_a_file_has_lab_its_loop_is_told_and_its_error_goes_on(desk: Desk, tmp_path: Path) -> None:
    for source, error in (("a = 1\n", None), ("breakpoint()\n1 / 0\n", ZeroDivisionError)):
        desk.told.clear()
        (tmp_path / "net.py").write_text(source)
        output = desk.lab.output()

        def run(source: str = source, output: Any = output) -> None:
            import types

            path = tmp_path / "net.py"
            module = types.ModuleType("net")
            with seen_and_held(desk.lab, path, output) as around, around(module):
                assert vars(module)["lab"] is desk.lab.console.namespace.lab
                exec(compile(source, str(path), "exec"), vars(module))

        if error is None:
            run()
            assert desk.told == []
            continue
        with pytest.raises(error):
            run()
        assert desk.places() == [("line", 1), ("", 0)]
        assert isinstance(desk.told[-1], VariablesSnapshot)  # those of the console again


def test_a_holder_may_hold_once_it_was_asked_to_or_has_held(desk: Desk) -> None:
    holder = Holder(desk.lab, desk.lab.console.namespace, "a cell", desk.lab.output())
    assert not holder.may_hold()
    for name, value in (("steps_backward", True), ("steps_backward", False)):
        setattr(desk.control, name, value)
        assert holder.may_hold() is value
    desk.control.pause.set()
    assert holder.may_hold()
    desk.control.pause.clear()
    holder.has_held = True
    assert holder.may_hold()


def test_parameters_have_the_names_of_the_modules_that_have_them(desk: Desk) -> None:
    holder = Holder(desk.lab, desk.lab.console.namespace, "a cell", desk.lab.output())
    net = torch.nn.Linear(2, 1)
    named = desk.lab.console.namespace.variables
    own = torch.nn.Parameter(torch.ones(1))
    named.update(x=3, net=net, bias=net.bias, own=own)
    assert [holder.names.of(p) for p in (net.weight, net.bias)] == ["net.weight", "net.bias"]
    assert holder.names.of(own) == "own"
    for unnamed in (torch.nn.Parameter(torch.ones(1)), torch.ones(1)):
        assert holder.names.of(type(unnamed)(unnamed)) == ""


def test_a_question_inside_is_answered_once_at_a_time(desk: Desk) -> None:
    holder = Holder(desk.lab, desk.lab.console.namespace, "a cell", desk.lab.output())
    seen: list[str] = []

    def answer() -> None:
        seen.append("answered")
        holder.inside(lambda: seen.append("never"))

    holder.inside(answer)
    holder.inside(answer)
    assert seen == ["answered", "answered"]
    torch.func.vmap(lambda x: holder.inside(answer) or x)(torch.ones(2))
    assert len(seen) == 2  # torch is in a transform there


def test_what_is_watched_begins_anew_if_it_is_asked_for(desk: Desk) -> None:
    lab = desk.lab
    assert watching_of(lab) is None
    net = torch.nn.Sequential(torch.nn.Linear(2, 1))
    lab.console.namespace.variables["net"] = net
    assert watching_of(lab) is None
    lab.subjects.watching.watch(ConsoleSubject("net"), net, ("0",))
    assert watching_of(lab) is lab.subjects.watching
    other = lab.console.namespace.variables["net"] = torch.nn.Sequential(torch.nn.Linear(2, 1))
    assert watching_of(lab) is lab.subjects.watching
    net(torch.ones(1, 2))
    assert lab.subjects.watching.take() == {}
    other(torch.ones(1, 2))
    assert lab.subjects.watching.take()


def test_looks_at_a_loop_are_kept_from_its_first(desk: Desk) -> None:
    loop: Any = type("Loop", (), {"leave_out": None, "step": 3})
    looks = loop_looks(desk.lab, dict, loop)
    assert desk.lab.subjects.loop_looks is None and looks is not None
