"""How many gradients, nodes and differences of a pass are told, and which gradients fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.autograd import BackwardStepper, read_graph
from engine.autograd.backward import comparing
from engine.autograd.backward.breakpoints import Breakpoints, is_inside
from engine.autograd.backward.gradients import check_all_fit, root_gradients
from engine.autograd.backward.numbers import number_of
from engine.autograd.backward.own_call import arguments_of
from engine.autograd.backward.pass_control import PassControl
from engine.autograd.backward.root_expressions import checked_gradient, split_expressions
from engine.lab import Lab
from engine.protocol import (
    Breakpoint,
    CompareGradientsCommand,
    ComparisonSnapshot,
    EditGradientCommand,
)
from engine.system.errors import LabError
from tests.engine.autograd.backward import test_console_passes as passes

# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t", "norm", "elements"),
    [
        (torch.tensor([3.0, 4.0, 0.0, 0.0]), 5.0, (3.0, 4.0, 0.0, 0.0)),
        (torch.tensor([3.0, 4.0, 0.0, 0.0, 0.0]), 5.0, ()),
        (torch.tensor(-2.0), 2.0, (-2.0,)),
        (torch.zeros(0), 0.0, ()),
        (torch.tensor([3, 4]), 5.0, (3.0, 4.0)),
        (torch.tensor([3 + 4j]), 5.0, ()),
        (torch.tensor([True, False]), 1.0, (1.0, 0.0)),
        (torch.eye(2).to_sparse(), 2**0.5, (1.0, 0.0, 0.0, 1.0)),
    ],
)
def test_the_elements_of_a_tiny_tensor_are_told_and_the_norm_of_any(
    t: Tensor, norm: float, elements: tuple[float, ...]
) -> None:
    found = number_of(t)
    assert found is not None and found.shape == tuple(t.shape)
    assert found.norm == pytest.approx(norm) and found.elements == elements


def test_what_has_no_data_has_no_number() -> None:
    assert number_of(None) is None and number_of(torch.ones(2, device="meta")) is None


# -- gradients that fit ----------------------------------------------------------------------------


def test_each_root_has_its_gradient_or_the_one_of_a_scalar() -> None:
    x = torch.ones(2, 1, requires_grad=True)
    scalar, row = (x * 2).sum(), x * 3
    (one,) = root_gradients([scalar], None)
    assert one.item() == 1.0 and one.shape == ()
    given = torch.tensor([[1], [2]])
    found = root_gradients([scalar, row], [None, given])
    assert found[1].dtype == torch.float32 and found[1].tolist() == [[1.0], [2.0]]
    assert root_gradients([row], given)[0].tolist() == [[1.0], [2.0]]
    for roots, gradient, error, words in (
        ([scalar, row], given, ValueError, "2 roots need as many gradients; got 1"),
        ([row], None, ValueError, r"only for a scalar root; this one has shape \(2, 1\)"),
        ([row], [3], TypeError, "is a tensor, or one for each root; got 3"),
        ([row], torch.ones(2), ValueError, r"has shape \(2,\), not \(2, 1\)"),
        ([row], torch.ones(2, 1, dtype=torch.complex64), ValueError, "has dtype torch.complex64"),
        ([row], torch.ones(2, 1, device="meta"), ValueError, "has device meta, not cpu"),
    ):
        with pytest.raises(error, match=words):
            root_gradients(roots, gradient)  # type: ignore[arg-type]


def test_roots_are_expressions_between_commas() -> None:
    assert split_expressions(" y ") == ("y",) and split_expressions("y, f(a, b)") == (
        "y", "f(a, b)",
    )  # fmt: skip
    for text, words in (
        ("", r"^There is no root\.$"), (" \n", r"^There is no root\.$"),
        ("x +", "`x \\+` is not an expression"), (",", "`,` is not an expression"),
    ):  # fmt: skip
        with pytest.raises(LabError, match=words) as told:
            split_expressions(text)
        assert told.value.hint == "Write a variable's name: loss, or y, z."


def test_a_gradient_that_was_typed_has_the_shape_of_its_root() -> None:
    y = torch.ones(2, requires_grad=True) * 2
    words = r"for `y` has shape \(3,\), and `y` has \(2,\): they must be the same\."
    with pytest.raises(LabError, match=words) as told:
        checked_gradient([1, 2, 3], "[1, 2, 3]", y, "y")
    assert told.value.hint.startswith("Write torch.ones_like(y)")
    found, _ = checked_gradient([1, 2], "[1, 2]", y, "y")
    assert found is not None and found.tolist() == [1.0, 2.0]


def test_there_is_one_gradient_for_each_output_of_a_node() -> None:
    x = torch.ones(3, requires_grad=True)
    first, _ = x.split((1, 2))
    node = read_graph(first).node_of(first.grad_fn)
    check_all_fit(node, (None, torch.ones(2)))
    check_all_fit(node, (torch.ones(1), torch.ones(2)), (torch.zeros(1), None))
    for gradients, arrived, error, words in (
        ((None,), (), ValueError, "takes 2 gradients, one per output; got 1"),
        ((None, 3), (), TypeError, "is a tensor, or None; got 3"),
        ((torch.ones(2), None), (), ValueError, r"has shape \(2,\), not \(1,\)"),
        (
            (None, torch.ones(2)), (None, torch.ones(2).to_sparse()), ValueError,
            "has layout torch.strided, not torch.sparse_coo",
        ),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            check_all_fit(node, gradients, arrived)  # type: ignore[arg-type]


def test_the_arguments_of_a_call_are_roots_and_gradients_or_none_of_ours() -> None:
    x = torch.ones(2, requires_grad=True)
    y, g = x * 2, torch.ones(2)

    def told(tensors: object, gradients: object) -> Any:
        found = arguments_of(tensors, gradients)
        if found is None:
            return None
        roots, given = found
        ids = {id(x): "x", id(y): "y", id(g): "g", id(None): None}
        return (
            [ids[id(each)] for each in roots],
            None if given is None else [ids[id(each)] for each in given],
        )

    assert told(y, None) == (["y"], None) and told((y, x), None) == (["y", "x"], None)
    assert told([y], g) == (["y"], ["g"]) and told([y, y], (g, None)) == (["y", "y"], ["g", None])
    for tensors, gradients in (
        ([], None),
        ([3], None),
        (g, None),
        ([y, g], None),
        (y, 3),
        (y, [3]),
    ):
        assert told(tensors, gradients) is None


# -- a pass in the console -------------------------------------------------------------------------


@pytest.fixture
def lab() -> Iterator[Lab]:
    yield passes.made("xs = [torch.ones(1, requires_grad=True) for _ in range(30)]")
    while passes.LABS:
        passes.LABS.pop().close()


@pytest.mark.parametrize(("count", "told", "more"), [(24, 24, 0), (25, 24, 1), (30, 24, 6)])
def test_24_waiting_gradients_are_told(lab: Lab, count: int, told: int, more: int) -> None:
    passes.run(lab, f"y = torch.cat([x * 2 for x in xs[:{count}]]).sum()")
    passes.start(lab, root="y")
    passes.move(lab, "step")
    at = passes.move(lab, "step")
    assert (len(at.pending), at.pending_more) == (told, more)


def test_the_largest_differences_of_a_comparison_are_told(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "MAX_DIFFERENCES", 2)
    passes.run(lab, "y = (xs[0] * 2 + xs[1] * 3 + xs[2] * 4).sum()")
    passes.start(lab, root="y")
    assert lab.backward.under_way is not None
    graph = lab.backward.under_way.stepper.graph
    for x, edit in zip(passes.variable(lab, "xs"), ("g + 1", "g + 3", "g + 2"), strict=False):
        (leaf,) = (node.id for node in graph.nodes if node.variable is x)
        passes.send(lab, EditGradientCommand(node=leaf, expression=edit))
    passes.move(lab, "end")
    found = passes.send(lab, CompareGradientsCommand())
    assert isinstance(found, ComparisonSnapshot)
    assert found.max_difference == 3.0 and list(found.differences.values()) == [3.0, 2.0]
    assert [x.grad.item() for x in passes.variable(lab, "xs")[:3]] == [3.0, 6.0, 6.0]


# -- breakpoints -----------------------------------------------------------------------------------


def test_a_module_holds_what_is_inside_it_and_not_what_begins_alike() -> None:
    assert is_inside("net", "net") and is_inside("net.0.a", "net.0")
    assert not is_inside("net.01", "net.0") and not is_inside("net", "net.0")


def test_a_breakpoint_counts_the_nodes_that_it_is_on() -> None:
    x = torch.ones(2, requires_grad=True)
    graph = read_graph(((x * 2).exp() * 3).sum())
    points = [
        Breakpoint(on="op", target="mul"), Breakpoint(on="op", target="MulBackward0"),
        Breakpoint(on="node", target="0"), Breakpoint(on="module", target="net"),
        Breakpoint(on="any", target=""),
    ]  # fmt: skip
    breakpoints = Breakpoints(points)
    breakpoints.begin({0: "net.loss", 1: "net", 2: "other"})
    states = breakpoints.states_in(graph.nodes)
    assert [state.places for state in states] == [2, 2, 1, 2, len(graph.nodes)]
    assert [state.hits for state in states] == [0] * 5


def test_only_edits_of_nodes_that_have_not_run_are_taken_away() -> None:
    y = torch.tensor(2.0, requires_grad=True) * 5
    steps = PassControl(lambda: BackwardStepper(y), Breakpoints())
    for node in (-1, 2):
        with pytest.raises(LabError, match="There is no node"):
            steps.unedit(node)
    steps.edit(0, "g * 3")
    steps.go("step")
    with pytest.raises(LabError):
        steps.unedit(0)
    assert steps.is_edited(steps.stepped.graph.nodes[0])


# -- edits that were interrupted -------------------------------------------------------------------


class Slow:
    """What an edit calls: it is interrupted while `is_interrupted`."""

    is_interrupted = False
    calls = 0

    def __call__(self, g: Tensor) -> Tensor:
        self.calls += 1
        if self.is_interrupted:
            raise KeyboardInterrupt
        return g * 3


@pytest.mark.parametrize("how", ["go", "edit", "unedit"])
def test_an_edit_that_was_interrupted_runs_again_when_something_was_done(how: str) -> None:
    slow = Slow()
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 5
    steps = PassControl(lambda: BackwardStepper(y), Breakpoints(), variables={"slow": slow})
    assert steps.preview() == ()
    steps.edit(0, "slow(g)")
    (shown,) = steps.preview()
    assert shown is not None and shown.item() == 3.0
    slow.is_interrupted = True
    with pytest.raises(KeyboardInterrupt):
        steps.go("step")
    assert steps.stepped.position == 0
    calls = slow.calls
    with pytest.raises(LabError, match="The last move was interrupted"):
        steps.preview()
    assert slow.calls == calls  # it would run long again
    slow.is_interrupted = False
    if how == "go":
        steps.go("step")
        assert steps.preview() == () and steps.stepped.position == 1
        steps.go("end")
        assert x.grad is not None and x.grad.item() == 15.0
        steps.go("reset")
    elif how == "edit":
        steps.edit(0, "g * 7")
    else:
        steps.unedit(0)
        assert steps.preview() == () and not steps.is_edited(steps.stepped.graph.nodes[0])
        steps.edit(0, "slow(g)")
    (shown,) = steps.preview()
    assert shown is not None and shown.item() == (7.0 if how == "edit" else 3.0)
