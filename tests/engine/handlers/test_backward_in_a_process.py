"""The backward debugger in a real engine process: interrupted, left while it holds a pass,
and written as a script."""

from __future__ import annotations

import pytest

from engine.process import EngineProcess
from engine.protocol import (
    BackwardSnapshot,
    CompareGradientsCommand,
    EditGradientCommand,
    ErrorSnapshot,
    InterruptSignal,
    MoveBackwardCommand,
    NewNamespaceCommand,
    StartBackwardCommand,
)
from tests.engine.processes import WAIT_S, answers, run_cell

pytestmark = pytest.mark.usefixtures("forked_processes")


@pytest.fixture
def engine(shared_engine) -> EngineProcess:
    """The module's engine, with a new namespace."""
    answers(shared_engine, shared_engine.send(NewNamespaceCommand()))
    return shared_engine


HANGING = """
import socket
x = torch.ones(3, requires_grad=True)
y = (x * 2).sum()
line = socket.create_connection(("127.0.0.1", {port}))
def hang(g):
    line.sendall(b"here")
    while True:
        pass
"""


@pytest.mark.parametrize("real_engine", [False, True])
def test_an_expression_that_hangs_is_interrupted(engine, listener, real_engine) -> None:
    run_cell(engine, HANGING.format(port=listener.getsockname()[1]))
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(WAIT_S)
        start = StartBackwardCommand(root="y", real_engine=real_engine)
        assert isinstance(answers(engine, engine.send(start))[-1], BackwardSnapshot)
        hanging = engine.send(EditGradientCommand(node=0, expression="hang(g)"))
        assert connection.recv(4) == b"here"
        engine.signal(InterruptSignal())
        *_, error = answers(engine, hanging)
        assert isinstance(error, ErrorSnapshot) and error.error.type == "KeyboardInterrupt"
        # A later node: the expression is evaluated when the pass comes to it.
        *_, edited = answers(engine, engine.send(EditGradientCommand(node=1, expression="hang(g)")))
        assert len(edited.edits) == 1
        running = engine.send(MoveBackwardCommand(move="end"))
        assert connection.recv(4) == b"here"
        engine.signal(InterruptSignal())
        *_, error = answers(engine, running)
        assert isinstance(error, ErrorSnapshot) and error.error.type == "KeyboardInterrupt"
        *_, mended = answers(engine, engine.send(EditGradientCommand(node=1, expression="g * 5")))
        assert mended.position == 1
        *_, done = answers(engine, engine.send(MoveBackwardCommand(move="end")))
        assert done.next is None and done.gradients[0].gradient.mean == 10.0


def test_an_engine_that_holds_a_pass_leaves_by_itself(own_engine) -> None:
    run_cell(own_engine, "x = torch.ones(3, requires_grad=True); y = (x * 2).sin().sum()")
    answers(own_engine, own_engine.send(StartBackwardCommand(root="y", real_engine=True)))
    *_, held = answers(own_engine, own_engine.send(MoveBackwardCommand(move="step")))
    assert held.position == 1
    own_engine.stop(grace_s=WAIT_S)
    assert own_engine.exit().code == 0


def test_other_passes_run_through_while_one_is_held(engine) -> None:
    run_cell(engine, "x = torch.ones(3, requires_grad=True); y = (x * 2).sin().sum()")
    answers(engine, engine.send(StartBackwardCommand(root="y", real_engine=True)))
    answers(engine, engine.send(MoveBackwardCommand(move="step")))
    source = "w = torch.ones(2, requires_grad=True)\n(w * 3).sum().backward()\nw.grad[0].item()"
    *_, end = run_cell(engine, source)
    assert end.ok, end.error
    *_, done = answers(engine, engine.send(MoveBackwardCommand(move="end")))
    assert done.next is None


CUSTOM = """
import socket, threading
line = socket.create_connection(("127.0.0.1", {port}))
go_on = threading.Event()
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t * 1
    @staticmethod
    def backward(ctx, g):
        line.sendall(b"here")
        while not go_on.is_set():
            pass
        return g
x = torch.ones(3, requires_grad=True)
y = (Slow.apply(x * 2) * 3).sum()
"""


def test_a_function_that_hangs_in_its_backward_is_interrupted(engine, listener) -> None:
    run_cell(engine, CUSTOM.format(port=listener.getsockname()[1]))
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(WAIT_S)
        answers(engine, engine.send(StartBackwardCommand(root="y")))
        running = engine.send(MoveBackwardCommand(move="end"))
        assert connection.recv(4) == b"here"
        engine.signal(InterruptSignal())
        *_, error = answers(engine, running)
        assert isinstance(error, ErrorSnapshot) and error.error.type == "KeyboardInterrupt"
        run_cell(engine, "go_on.set()")
        *_, done = answers(engine, engine.send(MoveBackwardCommand(move="end")))
        assert done.next is None and done.gradients[0].gradient.mean == 6.0


HOOKED = """
import socket, threading
line = socket.create_connection(("127.0.0.1", {port}))
go_on = threading.Event()
def hang(*_):
    line.sendall(b"here")
    while not go_on.is_set():
        pass
x = torch.ones(3, requires_grad=True)
inner = x * 2
y = (inner.sin() * 0 + inner).sum()
{hooked}(hang)
"""


@pytest.mark.parametrize("move", ["end", "step"])
@pytest.mark.parametrize(
    "hooked",
    ["inner.register_hook", "inner.grad_fn.register_hook", "x.register_post_accumulate_grad_hook"],
)
def test_a_hook_that_hangs_is_interrupted(engine, listener, hooked, move) -> None:
    """Also in a run of many nodes; what the interrupted node did is taken back."""
    run_cell(engine, HOOKED.format(port=listener.getsockname()[1], hooked=hooked))
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(WAIT_S)
        *_, begun = answers(engine, engine.send(StartBackwardCommand(root="y")))
        reached = begun.position
        while True:
            running = engine.send(MoveBackwardCommand(move=move))
            if move == "end" or reached == (5 if hooked.startswith("x") else 4):
                break
            reached = answers(engine, running)[-1].position
        assert connection.recv(4) == b"here"
        engine.signal(InterruptSignal())
        *_, state, error = answers(engine, running)
        assert isinstance(error, ErrorSnapshot) and error.error.type == "KeyboardInterrupt"
        assert state.position == (5 if hooked.startswith("x") else 4)
        assert state.gradients[0].gradient is None
        run_cell(engine, "go_on.set()")
        *_, done = answers(engine, engine.send(MoveBackwardCommand(move="end")))
        assert done.next is None and done.gradients[0].gradient.mean == 2.0


@pytest.mark.parametrize("inputs", [(), ("x",)])
def test_a_hook_that_hangs_in_the_comparison_is_interrupted(engine, listener, inputs) -> None:
    run_cell(engine, HOOKED.format(port=listener.getsockname()[1], hooked="inner.register_hook"))
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(WAIT_S)
        run_cell(engine, "go_on.set()")
        answers(engine, engine.send(StartBackwardCommand(root="y", inputs=inputs)))
        answers(engine, engine.send(MoveBackwardCommand(move="end")))
        assert connection.recv(4) == b"here"
        run_cell(engine, "go_on.clear()")
        comparing = engine.send(CompareGradientsCommand())
        assert connection.recv(4) == b"here"
        engine.signal(InterruptSignal())
        *_, error = answers(engine, comparing)
        assert isinstance(error, ErrorSnapshot) and error.error.type == "KeyboardInterrupt"
        run_cell(engine, "go_on.set()")
        *_, compared = answers(engine, engine.send(CompareGradientsCommand()))
        assert compared.max_difference == 0.0


def test_whoever_waits_for_a_hanging_real_engine_is_freed(engine, listener) -> None:
    run_cell(engine, CUSTOM.format(port=listener.getsockname()[1]))
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(WAIT_S)
        answers(engine, engine.send(StartBackwardCommand(root="y", real_engine=True)))
        running = engine.send(MoveBackwardCommand(move="end"))
        assert connection.recv(4) == b"here"
        engine.signal(InterruptSignal())
        *_, error = answers(engine, running)
        assert isinstance(error, ErrorSnapshot) and error.error.type == "KeyboardInterrupt"
        run_cell(engine, "go_on.set()")  # now it ends, in its own thread
        *_, done = answers(engine, engine.send(MoveBackwardCommand(move="end")))
        assert done.next is None and done.gradients[0].gradient.mean == 6.0
