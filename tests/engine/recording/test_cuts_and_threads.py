"""Why tensors require no grad, names of calls, numbers of threads, and what runs unseen."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from engine.console.namespace import Namespace
from engine.recording import threads
from engine.recording.call_names import index_text, op_name
from engine.recording.gradient_cuts import GradientCuts
from engine.recording.recording import GradientCut
from engine.recording.threads import shared_below, threads_counted
from tests.engine.namespaces import run

# -- why a tensor requires no grad -----------------------------------------------------------------

PLACE = ("<cell 1>", 3)


def given(*tensors: Tensor) -> list:
    return [(t, t._version, t.requires_grad) for t in tensors]


def noted(cuts: GradientCuts, name: str, arguments: tuple[Tensor, ...], result: Tensor) -> Any:
    """The reason and whether it is about the result itself, after a call."""
    cuts.note_result(name, given(*arguments), result, lambda: PLACE)
    found = cuts.why(result)
    return found.reason, found.tensor() is result, found.place


def test_the_call_that_cut_the_gradient_is_told() -> None:
    cuts = GradientCuts()
    x = torch.ones(2, requires_grad=True)
    for name, result, reason in (
        ("detach", x.detach(), "detach"), ("data", x.data, "detach"),
        ("aten::detach", x.detach(), "detach"), ("argmax", x.argmax(), "integer"),
        ("own", torch.ones(2), "unknown"), ("own", torch.ones(2, dtype=torch.cfloat), "unknown"),
    ):  # fmt: skip
        assert noted(cuts, name, (x,), result) == (reason, True, PLACE)
    with torch.no_grad():
        assert noted(cuts, "mul", (x,), x * 2) == ("no_grad", True, PLACE)
        assert noted(cuts, "detach", (x,), x.detach()) == ("detach", True, PLACE)


def test_what_is_computed_from_a_cut_tensor_has_its_cut() -> None:
    cuts = GradientCuts()
    x = torch.ones(2, requires_grad=True)
    data, cut = torch.ones(2), x.detach()
    assert noted(cuts, "detach", (x,), cut)[0] == "detach"
    both = data + cut
    assert noted(cuts, "add", (data, cut), both) == ("detach", False, PLACE)
    assert cuts.why(both).tensor() is cut
    again = both * 2
    assert noted(cuts, "mul", (both,), again)[0] == "detach"
    assert noted(cuts, "add", (data,), data + 1) == ("input", True, PLACE)
    places = (data > 0).long()
    assert noted(cuts, "gt", (data,), places) == ("integer", True, None)
    # A tensor that was cut, and of which an operation in place makes an integer-like other.
    cuts.know(places, GradientCut("detach", weakref.ref(places), PLACE))
    cuts.note_result("gt", given(data), places, lambda: PLACE)
    assert cuts.why(places).reason == "integer"


def test_a_call_that_returns_its_argument_changes_nothing_but_for_some() -> None:
    cuts = GradientCuts()
    x = torch.ones(2)
    assert noted(cuts, "add_", (x,), x) == ("input", True, None)
    needed = torch.ones(2, requires_grad=True)
    before = given(needed)
    needed.requires_grad_(False)
    cuts.note_result("requires_grad_", before, needed, lambda: PLACE)
    assert (cuts.why(needed).reason, cuts.why(needed).place) == ("frozen", PLACE)


def test_a_parameter_is_frozen_and_what_requires_grad_has_no_cut() -> None:
    cuts = GradientCuts()
    frozen = nn.Parameter(torch.ones(1), requires_grad=False)
    assert cuts.why(frozen).reason == "frozen" and cuts.why(torch.ones(1)).reason == "input"
    assert cuts.why(torch.ones(1, dtype=torch.int8)).reason == "integer"
    assert noted(cuts, "mul", (frozen,), frozen * 2)[0] == "frozen"
    assert cuts.slot(torch.ones(1), True) is True
    slot = cuts.slot(frozen, False)
    assert isinstance(slot, GradientCut) and slot.tensor() is frozen


def test_cuts_of_tensors_that_are_gone_are_forgotten() -> None:
    cuts = GradientCuts()
    x = torch.ones(2, requires_grad=True)
    kept = x.detach()
    noted(cuts, "detach", (x,), kept)
    noted(cuts, "detach", (x,), x.detach())
    gc.collect()
    cuts.forget_the_dead()
    assert len(cuts._cuts) == 1 and cuts.why(kept).reason == "detach"


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("func", "args", "name"),
    [
        (Tensor.add_, (), "add_"),
        (Tensor.__ior__, (), "|="),
        (Tensor.T.__get__, (), "T"),  # pyright: ignore[reportFunctionMemberAccess]
        (Tensor.grad.__set__, (), "grad"),  # pyright: ignore
        (Tensor.__getitem__, (0, (0, slice(1, None))), "[0, 1:]"),
        (Tensor.__setitem__, (0, ...), "[...] ="),
        (Tensor.__getitem__, (), "[…]"),
        (Tensor.__setitem__, (0,), "[…] ="),
    ],
)
def test_functions_have_the_names_that_are_typed(func: Callable, args: tuple, name: str) -> None:
    assert op_name(func, args) == name


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (3, "3"), (None, "None"), (True, "True"), ((), "()"), (slice(None), ":"),
        (slice(1, 2), "1:2"), (slice(None, None, 2), "::2"), (slice(-1, None, None), "-1:"),
        ((0, ..., None), "0, ..., None"), ([1], "…"), (torch.tensor(1), "…"),
        ((slice(0, torch.tensor(2)), 1), "0:…, 1"),
    ],
)  # fmt: skip
def test_an_index_is_told_as_it_is_typed(index: object, text: str) -> None:
    assert index_text(index) == text


# -- threads ---------------------------------------------------------------------------------------


def test_the_nodes_of_threads_are_counted_and_torch_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_taken", 0)
    start, reached = threading.Thread.start, []

    class Own(threading.Thread):
        def run(self) -> None:
            y = torch.ones(1, requires_grad=True)
            for _ in range(3):
                y = y * 2
                reached.append((torch.autograd._get_sequence_nr(), shared_below()))  # pyright: ignore

    with threads_counted():
        assert threading.Thread.start is not start
        for thread in (Own(), Own()):
            thread.start()
            thread.join()
    assert threading.Thread.start is start
    assert reached == [(n, max(n, 3 * turn)) for turn in (0, 1) for n in (1, 2, 3)]
    assert shared_below() == 3
    Own().run()  # in this thread, which is not counted
    uncounted = Own()
    uncounted.start()
    uncounted.join()
    assert shared_below() == 3


def test_a_thread_that_raises_or_builds_nodes_outside_of_functions_is_counted_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_taken", 0)
    monkeypatch.setattr(threading, "excepthook", lambda args: None)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
            return g * 2

    def work() -> None:
        Twice.apply(torch.ones(1, requires_grad=True))
        raise ValueError

    with threads_counted():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert shared_below() >= 1


# -- what runs unseen ------------------------------------------------------------------------------

BEGIN = """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def loss(): return net(torch.ones(4, 2)).square().mean()
"""


def names(namespace: Namespace) -> set[str]:
    return {call.name for call in namespace.recordings.kept[-1].calls}


def test_a_backward_that_builds_a_graph_is_seen() -> None:
    namespace = Namespace()
    run(namespace, BEGIN + "loss().backward()")
    assert names(namespace) == {"linear", "square", "mean"}
    run(namespace, BEGIN + "loss().backward(create_graph=True)\nnet.weight.grad.sum()")
    assert {"linear", "backward", "sum"} <= names(namespace)
    node = namespace.variables["net"].weight.grad.grad_fn
    call = namespace.recordings.kept[-1].call_of(node._sequence_nr())
    assert call is not None and call.name == "backward"


def test_gradients_that_are_set_to_zero_are_told_as_written() -> None:
    namespace = Namespace()
    for zero in ("opt.zero_grad(set_to_none=False)", "net.zero_grad(False)"):
        run(namespace, f"{BEGIN}loss().backward()\n{zero}")
        gradient = namespace.variables["net"].weight.grad
        written = namespace.writes.last_write(gradient)
        assert written is not None and written.line == 6 and "zero" in written.op
        assert gradient.tolist() == [[0.0, 0.0]]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_recording_goes_on_after_a_backward_that_raised() -> None:
    namespace = Namespace()
    code = "y = loss()\ny.backward()\ntry:\n    y.backward()\nexcept RuntimeError:\n    pass\n"
    run(namespace, f"{BEGIN}{code}z = net.weight.exp()")
    assert "exp" in names(namespace)
    assert torch.overrides._get_current_function_mode() is None


class Seen(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


class SeenOperators(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Seen, SeenOperators])
def test_a_mode_of_the_users_sees_backward_and_steps_as_without_a_recorder(
    mode: type[Seen | SeenOperators],
) -> None:
    code = (
        f"{BEGIN}with mode:\n    opt.zero_grad()\n    loss().backward()\n    opt.step()\n"
        "    net.zero_grad()\nz = net.weight.exp()"
    )
    plain: dict[str, Any] = {"torch": torch, "nn": nn, "mode": mode()}
    exec(code, plain)
    namespace = Namespace()
    namespace.variables["mode"] = mode()
    run(namespace, code)
    assert namespace.variables["mode"].names == plain["mode"].names
    assert sum("_record_function_enter_new" in name for name in plain["mode"].names) == 2
    assert {"linear", "exp"} <= names(namespace)


def test_a_mode_of_the_users_in_a_hook_sees_what_an_optimizer_begins() -> None:
    namespace = Namespace()
    namespace.variables["mode"] = Seen()
    code = (
        f"{BEGIN}def clear(gradient):\n    with mode:\n        opt.zero_grad()\n"
        "net.weight.register_hook(clear)\nloss().backward()"
    )
    run(namespace, code)
    assert "_record_function_enter_new" in namespace.variables["mode"].names
