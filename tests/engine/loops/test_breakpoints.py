"""`breakpoint()` in a cell or file of an engine process: where it holds, and what can be done."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from engine.process import EngineProcess
from engine.protocol import (
    CellSnapshot,
    CompleteCommand,
    CompletionsSnapshot,
    ContinueTrainingCommand,
    ErrorSnapshot,
    HeldSnapshot,
    LoopSnapshot,
    PauseSignal,
    ReadVariablesCommand,
    RunCellCommand,
    RunFileCommand,
    StepLineCommand,
    StepTrainingCommand,
    VariablesSnapshot,
)
from tests.engine.loops.held import HeldEngine
from tests.engine.processes import run_cell

NESTED = """
scale = 3.0
def double(value):
    total = value * 2
    {stop}
    total = total + scale
    return total
seen = []
for i in range(3):
    seen.append(double(i))
seen
"""


def hold(engine: EngineProcess, source: str) -> HeldEngine:
    return HeldEngine(engine, RunCellCommand(source=source))


def line_of(held) -> str:
    return held.source.splitlines()[held.line - 1].strip()


@pytest.mark.parametrize("stop", ["breakpoint()", "import pdb; pdb.set_trace()", "lab.hold()"])
def test_a_breakpoint_in_a_function_holds_there(shared_engine: EngineProcess, stop: str) -> None:
    held = hold(shared_engine, NESTED.format(stop=stop))
    where = held.wait()
    assert (where.at, where.function, where.line, line_of(where)) == ("line", "double", 5, stop)
    assert where.title == where.file and where.title.startswith("cell ")
    (listed,) = held.ask(ReadVariablesCommand())
    assert isinstance(listed, VariablesSnapshot)
    texts = {variable.name: variable.text for variable in listed.variables}
    assert list(texts)[:2] == ["value", "total"] and texts["total"] == "0"
    assert texts["i"] == "0" and texts["scale"] == "3.0"  # globals of the cell
    (names,) = held.ask(CompleteCommand(source="tot", cursor=3))
    assert isinstance(names, CompletionsSnapshot)
    assert [completion.text for completion in names.completions] == ["total"]
    assert held.type("total + scale") == "3.0\n"
    assert held.type("[total + scale for _ in range(2)]") == "[3.0, 3.0]\n"
    held.ask(ContinueTrainingCommand())
    held.wait()
    assert held.type("i, value") == "(1, 1)\n"
    held.ask(ContinueTrainingCommand())
    held.wait()
    held.ask(ContinueTrainingCommand())
    assert isinstance(end := held.end()[-1], CellSnapshot) and end.ok
    assert held.printed.endswith("[3.0, 5.0, 7.0]\n")


def test_typed_code_assigns_to_the_frame_and_says_what_it_cannot(
    shared_engine: EngineProcess,
) -> None:
    held = hold(shared_engine, NESTED.format(stop="breakpoint()"))
    held.wait()
    assert held.type("total = 100") == ""
    assert held.type("total") == "100\n"
    assert held.type("other = 5") == (
        "other: not among the variables of double, so it is kept only while it is held here.\n"
    )
    assert held.type("other + total") == "105\n"
    assert held.type("scale = 7") == (
        "scale: double does not see this change. To change the global, write `global scale` before"
        " it.\n"
    )
    assert held.type("global scale; scale = 0.5") == ""
    assert held.type("1 / 0") == "ZeroDivisionError: division by zero"
    assert held.type("x =").startswith("SyntaxError")
    for _ in range(2):
        held.ask(ContinueTrainingCommand())
        held.wait()
    assert held.type("total") == "4\n"
    held.ask(ContinueTrainingCommand())
    held.end()
    assert held.printed.endswith("[100.5, 2.5, 4.5]\n")


def test_typed_code_deletes_a_variable_and_sees_a_closure(shared_engine: EngineProcess) -> None:
    source = """
def outer():
    kept, gone = 1, 2
    def inner():
        nonlocal kept
        breakpoint()
        return kept
    result = inner()
    return result, "gone" in locals()
outer()
"""
    held = hold(shared_engine, source)
    held.wait()
    assert held.type("kept = 10") == ""
    for _ in range(2):
        held.ask(StepLineCommand())
        where = held.wait()
    assert (where.function, line_of(where)) == ("outer", 'return result, "gone" in locals()')
    assert held.type("del gone") == ""
    held.ask(ContinueTrainingCommand())
    held.end()
    assert held.printed.endswith("(10, False)\n")


def test_next_line_goes_over_calls_out_of_functions_and_to_the_last_expression(
    shared_engine: EngineProcess,
) -> None:
    source = "def f(n):\n    breakpoint()\n    n = n + sum(g(k) for k in range(3))\n    return n\n"
    source += "def g(k):\n    k = k * 2\n    return k\nfor n in range(2):\n    x = f(n)\n(x, 'end')"
    held = hold(shared_engine, source)
    lines = [held.wait().line]
    for _ in range(9):
        held.ask(StepLineCommand())
        lines.append(held.wait().line)
    assert lines == [2, 3, 4, 8, 9, 2, 3, 4, 8, 10]
    held.ask(StepLineCommand())
    assert isinstance(end := held.end()[-1], CellSnapshot) and end.ok


def test_held_at_a_line_the_loop_is_shown_up_to_its_last_step(shared_engine: EngineProcess) -> None:
    source = """
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for i in range(9):
    w.sum().backward()
    optimizer.step()
    if i == 6: breakpoint()
"""
    held = hold(shared_engine, source)
    loops: list[LoopSnapshot] = []
    while not isinstance(snapshot := held.receive(), HeldSnapshot):
        if isinstance(snapshot, LoopSnapshot):
            loops.append(snapshot)
    assert (loops[-1].state, loops[-1].step) == ("running", 7)
    held.ask(ContinueTrainingCommand())
    loops += [snapshot for snapshot in held.end() if isinstance(snapshot, LoopSnapshot)]
    times = [ms for loop in loops for ms in loop.steps.step_ms]
    assert len(times) == 9 and all(ms > 0 for ms in times[1:])  # without the time of the hold


def test_a_step_from_a_breakpoint_goes_to_the_next_optimizer_step(
    shared_engine: EngineProcess,
) -> None:
    source = """
torch.manual_seed(0)
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for i in range(4):
    if i == 1:
        breakpoint()
    optimizer.zero_grad()
    (w ** 2).sum().backward()
    optimizer.step()
w.tolist()
"""
    held = hold(shared_engine, source)
    assert held.wait().at == "line"
    held.ask(StepTrainingCommand())
    assert held.wait().at == "step" and held.type("i") == "1\n"
    held.ask(StepLineCommand())
    where = held.wait()
    assert (where.at, line_of(where)) == ("line", "for i in range(4):")
    held.ask(ContinueTrainingCommand())
    held.end()
    w = torch.ones(3)
    for _ in range(4):
        w = w - 0.1 * (2 * w)
    assert eval(held.printed.splitlines()[-1]) == w.tolist()


def test_a_line_that_steps_the_optimizer_is_held_once(shared_engine: EngineProcess) -> None:
    source = """
w = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
breakpoint()
optimizer.step()
after = 1
"""
    held = hold(shared_engine, source)
    held.wait()
    held.ask(StepLineCommand())
    assert line_of(held.wait()) == "optimizer.step()"
    shared_engine.signal(PauseSignal())
    held.ask(StepLineCommand())
    told: list[LoopSnapshot] = []
    while not (isinstance(where := held.receive(), HeldSnapshot) and where.at):
        told += [where] if isinstance(where, LoopSnapshot) else []
    assert where.at == "step" and told[-1].state == "paused"
    held.ask(ContinueTrainingCommand())
    assert held.next_hold() is None


IN_TORCH = """
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
    def forward(self, x):
        hidden = self.layer(x)
        {in_forward}
        return hidden.relu()
net = Net()
def hook(grad):
    doubled = grad * 2
    {in_hook}
    return doubled
net.layer.weight.register_hook(hook)
x = torch.rand(5, 3)
with torch.no_grad():
    before = net(x)
    {in_no_grad}
net(x).sum().backward()
after = torch.rand(2)
print(net.layer.weight.grad.tolist(), after.tolist(), before.tolist(), torch.is_grad_enabled())
"""
PLACES = ("in_forward", "in_hook", "in_no_grad")


@pytest.mark.parametrize("place", PLACES)
def test_it_holds_inside_torch_and_nothing_changes(
    shared_engine: EngineProcess, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    stops = dict.fromkeys(PLACES, "pass")
    exec(IN_TORCH.format(**stops), {"torch": torch, "nn": nn})
    plain = capsys.readouterr().out
    held = hold(shared_engine, IN_TORCH.format(**{**stops, place: "breakpoint()"}))
    for turn in range(2 if place == "in_forward" else 1):
        held.wait()
        held.ask(ReadVariablesCommand())
        is_on = place == "in_forward" and turn == 1
        assert held.type("torch.is_grad_enabled()") == f"{is_on}\n"
        if place == "in_forward":
            assert (
                held.type("self.layer(x).equal(hidden), hidden.requires_grad")
                == f"(True, {is_on})\n"
            )
        held.ask(ContinueTrainingCommand())
    held.end()
    assert held.printed.endswith(plain)


def test_typed_code_draws_from_the_codes_random_numbers(shared_engine: EngineProcess) -> None:
    held = hold(shared_engine, "torch.manual_seed(3)\nbreakpoint()\nprint(torch.rand(2).tolist())")
    held.wait()
    held.ask(ReadVariablesCommand())
    torch.manual_seed(3)
    assert held.type("torch.rand(2).tolist()") == f"{torch.rand(2).tolist()}\n"
    held.ask(ContinueTrainingCommand())
    held.end()
    assert held.printed.splitlines()[-1] == f"{torch.rand(2).tolist()}"


def test_it_holds_in_a_file(shared_engine: EngineProcess, tmp_path: Path) -> None:
    path = tmp_path / "stops.py"
    path.write_text(
        "import torch\ndef f(x):\n    y = x + 1\n    breakpoint()\n    return y\nz = f(1)\n"
    )
    held = HeldEngine(shared_engine, RunFileCommand(path=str(path)))
    where = held.wait()
    assert (where.title, where.file, where.function, where.line) == ("stops.py", "stops.py", "f", 4)
    assert held.type("y = 50") == ""
    held.ask(StepLineCommand())
    assert held.wait().line == 5
    held.ask(ContinueTrainingCommand())
    held.end()


def test_stop_ends_a_cell_that_is_held_at_a_line(shared_engine: EngineProcess) -> None:
    held = hold(shared_engine, NESTED.format(stop="breakpoint()"))
    held.wait()
    end = held.stop()[-1]
    assert isinstance(end, CellSnapshot) and end.error is not None
    assert (end.error.type, end.error.line) == ("KeyboardInterrupt", 5)
    assert "engine" not in end.error.traceback
    run_cell(shared_engine, "import sys\nassert sys.gettrace() is None")


def test_a_breakpoint_in_code_typed_while_held_does_not_hold(shared_engine: EngineProcess) -> None:
    held = hold(shared_engine, "def f():\n    breakpoint()\n    return 4\nf()")
    held.wait()
    assert held.type("f()") == "4\n"
    held.ask(ContinueTrainingCommand())
    held.end()


def test_nothing_is_held_afterwards(shared_engine: EngineProcess) -> None:
    held = hold(shared_engine, "breakpoint()\nx = 1")
    held.wait()
    held.ask(StepLineCommand())
    held.wait()
    held.ask(StepLineCommand())
    held.end()
    for command in (StepLineCommand(), ContinueTrainingCommand()):
        (error,) = held.ask(command)
        assert isinstance(error, ErrorSnapshot) and error.error.type == "LabError"


def test_other_threads_do_not_hold(shared_engine: EngineProcess) -> None:
    source = (
        "import threading\nt = threading.Thread(target=lambda: breakpoint())\nt.start()\nt.join()"
    )
    held = hold(shared_engine, source)
    held.end()
    assert "did not stop: it holds the main thread only" in held.printed


def test_a_hook_of_the_users_own_stays(shared_engine: EngineProcess) -> None:
    source = "import sys\nsys.breakpointhook = lambda: print('mine')\nbreakpoint()\n"
    held = hold(shared_engine, source + "sys.breakpointhook = sys.__breakpointhook__")
    held.end()
    assert held.printed == "mine\n"


def test_what_the_code_drops_after_it_was_held_is_gone(shared_engine: EngineProcess) -> None:
    held = hold(
        shared_engine,
        "import weakref\ndef f():\n    x = torch.ones(2)\n    seen = weakref.ref(x)\n"
        "    breakpoint()\n    del x\n    print('gone', seen() is None)\nf()",
    )
    held.wait()
    held.ask(ReadVariablesCommand())
    held.ask(ContinueTrainingCommand())
    held.end()
    assert held.printed == "gone True\n"
