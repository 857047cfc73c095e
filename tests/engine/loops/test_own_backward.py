"""backward() of the user's code, stepped in an engine process, against plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from engine.loops.backward_calls import backward_calls
from engine.process import EngineProcess
from engine.protocol import (
    BackwardMove,
    BackwardSnapshot,
    CellSnapshot,
    Command,
    ContinueTrainingCommand,
    EditGradientCommand,
    ErrorSnapshot,
    GraphSnapshot,
    InterruptSignal,
    MoveBackwardCommand,
    NodeDetailCommand,
    RunCellCommand,
    RunFileCommand,
    Snapshot,
    StartBackwardCommand,
    StepBackwardSignal,
    StepLineCommand,
    StepTrainingCommand,
    StopSignal,
)
from tests.engine.loops.held import HeldEngine
from tests.engine.loops.test_held_files import loops_of, weights, write
from tests.engine.processes import run_cell


def begin(engine: EngineProcess, command: Command) -> HeldEngine:
    engine.signal(StepBackwardSignal(on=True))
    return HeldEngine(engine, command)


def let_go(held: HeldEngine) -> list[Snapshot]:
    held.engine.signal(StepBackwardSignal(on=False))
    held.ask(ContinueTrainingCommand())
    return held.end()


def move(held: HeldEngine, how: BackwardMove, target: int = -1) -> BackwardSnapshot:
    answers = held.ask(MoveBackwardCommand(move=how, target=target))
    assert isinstance(answers[-1], BackwardSnapshot), answers
    return answers[-1]


@pytest.fixture(autouse=True)
def switched_off(shared_engine: EngineProcess) -> Iterator[None]:
    """After a test that fails, too, nothing is held."""
    yield
    shared_engine.signal(StepBackwardSignal(on=False))
    shared_engine.signal(StopSignal())
    shared_engine.signal(InterruptSignal())


def test_a_wrapper_that_the_users_code_has_kept_holds_no_more() -> None:
    held = []

    def take(*_: object) -> bool:
        held.append(1)
        return False

    with backward_calls(take):
        kept = torch.autograd.backward
    leaf = torch.ones(2, requires_grad=True)
    kept(leaf.sum())
    assert not held and leaf.grad is not None


def test_a_file_whose_backward_is_stepped_ends_with_the_weights_of_plain_python(
    shared_engine: EngineProcess, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    exec(write(tmp_path / "plain", 6).read_text(), {})
    path = write(tmp_path, 6)
    held = begin(shared_engine, RunFileCommand(path=str(path)))
    where = held.wait()
    assert (where.at, where.function) == ("backward", "train")
    assert path.read_text().splitlines()[where.line - 1].strip() == "loss.backward()"
    first = move(held, "step")
    assert first.position == 1 and first.step is not None
    for how in ("step", "step", "back", "step", "leaf", "reset", "end"):
        last = move(held, how)
    assert last.next is None
    held.ask(ContinueTrainingCommand())
    held.wait()  # the next turn's pass: let go on early
    move(held, "step")
    held.ask(ContinueTrainingCommand())
    held.wait()
    held.engine.send(StepTrainingCommand())  # on to the optimizer step
    while (where := held.wait()).at != "step":
        pass
    assert held.type("i") == "2\n"
    end = let_go(held)
    assert (loops_of(end)[-1].state, loops_of(end)[-1].step) == ("finished", 6)
    plain = weights(tmp_path / "plain")
    for name, value in weights(tmp_path).items():
        assert torch.equal(value, plain[name]), name


def test_the_pass_opens_at_its_root_with_names_and_lines(
    shared_engine: EngineProcess, tmp_path: Path
) -> None:
    held = begin(shared_engine, RunFileCommand(path=str(write(tmp_path, 2))))
    held.wait()
    found: list[Snapshot] = []
    while not any(isinstance(snapshot, BackwardSnapshot) for snapshot in found):
        found.append(held.receive())
    (graph,) = (snapshot for snapshot in found if isinstance(snapshot, GraphSnapshot))
    assert graph.root == "loss"
    names = {node.label for node in graph.nodes}
    assert {"loss = mse_loss", "net[0].weight", "net[2].bias"} <= names
    assert found[-1].position == 0 and found[-1].next is not None
    (detail,) = held.ask(NodeDetailCommand(node=found[-1].next.node))
    assert "F.mse_loss(net(x)" in str(detail)
    (error,) = held.ask(StartBackwardCommand(root="loss"))
    assert isinstance(error, ErrorSnapshot) and "backward() of your code" in error.error.message
    let_go(held)


CELLS = {
    "accumulates": "for _ in range(2): F.mse_loss(net(x), y).backward()",
    "retains": "loss = F.mse_loss(net(x), y)\nloss.backward(retain_graph=True)\nloss.backward()",
    "freed": """
loss = F.mse_loss(net(x), y)
loss.backward()
try:
    loss.backward()
except RuntimeError as error:
    print(str(error).partition(".")[0])
""",
    "several": """
a, b = net(x).sum(), net(x * 2)
torch.autograd.backward([a, b], [None, torch.rand_like(b)])
""",
    "create_graph": """
import warnings
warnings.simplefilter("ignore")  # torch tells once in a process of the reference cycle
net(x).pow(3).sum().backward(create_graph=True)
(net[0].weight.grad ** 2).sum().backward()
""",
    "no_grad": "loss = F.mse_loss(net(x), y)\nwith torch.no_grad(): loss.backward()",
    "hooks": """
calls = []
net[0].weight.register_hook(lambda g: calls.append("tensor") or g * torch.rand(1))
net[0].bias.register_post_accumulate_grad_hook(lambda p: calls.append("leaf"))
net[1].register_full_backward_hook(lambda *a: calls.append("module"))
F.mse_loss(net(x), y).backward()
print(calls)
""",
    "checkpoint": """
from torch.utils.checkpoint import checkpoint
out = checkpoint(net, x, use_reentrant=False)
F.mse_loss(out, y).backward()
""",
    "reentrant": """
from torch.utils.checkpoint import checkpoint
out = checkpoint(net, x.requires_grad_(), use_reentrant=True)
F.mse_loss(out, y).backward()
""",
    "function": """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g * torch.rand(1)
Square.apply(net(x)).sum().backward()
""",
    "inputs": "F.mse_loss(net(x), y).backward(inputs=[net[0].weight])",
    "raises": """
def refuse(g): raise ValueError("refused")
net[0].weight.register_hook(refuse)
try:
    F.mse_loss(net(x), y).backward()
except ValueError as error:
    print(error)
""",
}
BEGIN = """
from torch import nn
import torch, torch.nn.functional as F
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 2))
x, y = torch.randn(6, 4), torch.randn(6, 2)
"""
END = """
print([p.grad if p.grad is None else p.grad.tolist() for p in net.parameters()])
print(torch.rand(2).tolist())
"""


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("case", CELLS)
def test_gradients_hooks_and_random_numbers_are_torchs_own(
    shared_engine: EngineProcess, capsys: pytest.CaptureFixture[str], case: str, early: bool
) -> None:
    source = BEGIN + CELLS[case] + END
    exec(source, {})
    plain = capsys.readouterr().out
    held = begin(shared_engine, RunCellCommand(source=source))
    held_once = False
    while (where := held.next_hold()) is not None:
        held_once = True
        assert where.at == "backward"
        if not early:
            held.ask(MoveBackwardCommand(move="step"))
            held.ask(MoveBackwardCommand(move="run"))
        held.ask(ContinueTrainingCommand())
    assert held_once == (case != "inputs")
    printed = held.printed.replace("Line 8 of ", "")
    if case == "inputs":
        assert "backward(inputs=…) is not stepped. It runs at once.\n" in printed
        printed = printed.partition("at once.\n")[2]
    assert printed == plain


def test_an_edit_changes_the_gradients_of_the_code(shared_engine: EngineProcess) -> None:
    source = BEGIN + "loss = net(x).sum()\nloss.backward()\nnet[2].bias.grad.tolist()"
    held = begin(shared_engine, RunCellCommand(source=source))
    held.wait()
    held.ask(EditGradientCommand(node=0, expression="g * 3"))
    let_go(held)
    assert held.printed == "[18.0, 18.0]\n"
    end = run_cell(shared_engine, "assert torch.is_grad_enabled()")[-1]
    assert isinstance(end, CellSnapshot) and end.ok


def test_an_edit_sees_the_variables_of_the_code_that_is_held(shared_engine: EngineProcess) -> None:
    run_cell(shared_engine, BEGIN + "scale = 100\nloss = net(x).sum()")
    HeldEngine(shared_engine, StartBackwardCommand(root="loss")).end()  # of the console's variables
    source = "def train(scale):\n    net(x).sum().backward()\ntrain(5)\nnet[2].bias.grad.tolist()"
    held = begin(shared_engine, RunCellCommand(source=source))
    held.wait()
    held.ask(EditGradientCommand(node=0, expression="g * scale"))
    let_go(held)
    assert held.printed == "[30.0, 30.0]\n"


def test_an_edit_that_fails_is_taken_back_and_the_code_is_held_on(
    shared_engine: EngineProcess,
) -> None:
    source = BEGIN + "loss = net(x).sum()\nloss.backward()\nnet[2].bias.grad.tolist()"
    held = begin(shared_engine, RunCellCommand(source=source))
    held.wait()
    edited = held.ask(EditGradientCommand(node=1, expression="no_such_name"))[-1]
    assert isinstance(edited, BackwardSnapshot) and edited.edits
    held.ask(ContinueTrainingCommand())
    stopped = held.receive()
    while not (isinstance(stopped, BackwardSnapshot) and stopped.stopped_by):
        stopped = held.receive()
    assert stopped.position == 1 and not stopped.edits
    assert stopped.stopped_by.startswith("The edit at AddmmBackward0 is taken back: ")
    assert "NameError: name 'no_such_name' is not defined" in stopped.stopped_by
    let_go(held)
    assert held.printed == "[6.0, 6.0]\n"


def test_a_backward_that_cannot_be_stepped_is_told_and_runs(shared_engine: EngineProcess) -> None:
    held = begin(shared_engine, RunCellCommand(source=BEGIN + "net(x).backward()"))
    end = held.end()[-1]
    assert "backward() cannot be stepped: " in held.printed
    assert held.printed.endswith(" It runs at once.\n")
    assert end.error.message.startswith("grad can be implicitly created only for scalar outputs")


def test_a_backward_of_what_requires_no_grad_raises_as_torch_does(
    shared_engine: EngineProcess,
) -> None:
    held = begin(shared_engine, RunCellCommand(source="torch.ones(()).backward()"))
    end = held.end()[-1]
    assert "does not require grad" in end.error.message


def test_the_next_line_after_a_stepped_backward_is_held(shared_engine: EngineProcess) -> None:
    held = begin(shared_engine, RunCellCommand(source=BEGIN + "net(x).sum().backward()\nnext = 1"))
    line = held.wait().line
    held.ask(StepLineCommand())
    where = held.wait()
    assert (where.at, where.line) == ("line", line + 1)
    let_go(held)


def test_a_pass_begun_while_the_code_is_held_is_taken_back(shared_engine: EngineProcess) -> None:
    source = BEGIN + "loss = net(x).sum()\nbreakpoint()\nprint(net[0].weight.grad)\nloss.backward()"
    held = HeldEngine(shared_engine, RunCellCommand(source=source))
    held.wait()
    started = held.ask(StartBackwardCommand(root="loss"))
    assert isinstance(started[-1], BackwardSnapshot)
    assert move(held, "end").next is None
    assert held.type("net[2].bias.grad.tolist()") == "[6.0, 6.0]\n"
    (error,) = held.ask(MoveBackwardCommand(move="again"))
    assert isinstance(error, ErrorSnapshot)
    (error,) = held.ask(StartBackwardCommand(root="loss", real_engine=True))
    assert isinstance(error, ErrorSnapshot)
    held.ask(ContinueTrainingCommand())
    held.end()
    assert held.printed.endswith("None\n")


def test_stop_ends_the_cell_inside_its_backward(shared_engine: EngineProcess) -> None:
    held = begin(shared_engine, RunCellCommand(source=BEGIN + CELLS["accumulates"]))
    held.wait()
    end = held.stop()[-1]
    assert end.error.type == "KeyboardInterrupt" and end.error.line == 7


def test_what_the_code_drops_after_a_stepped_backward_is_gone(shared_engine: EngineProcess) -> None:
    source = (
        "import weakref\ndef f():\n    x = torch.ones(2, requires_grad=True)\n"
        "    seen = weakref.ref(x)\n    x.sum().backward()\n    del x\n"
        "    print('gone', seen() is None)\nf()"
    )
    held = begin(shared_engine, RunCellCommand(source=source))
    held.wait()
    move(held, "step")
    let_go(held)
    assert held.printed == "gone True\n"
