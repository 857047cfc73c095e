"""Passes of torch.autograd.grad: only the gradients of chosen inputs, against the real one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.autograd import BackwardStepper, BreakMode
from tests.engine.autograd import backward_cases as cases
from tests.engine.autograd.backward.test_stepper import same_bits

pytestmark = pytest.mark.filterwarnings("ignore:.*(Sparse invariant|sparse gradient).*:UserWarning")
NAMES = [n for n in cases.CASES if n != "checkpoint_with_reentry"]  # torch refuses


def by_grad(name: str, create_graph: bool, some: slice) -> list[torch.Tensor | None]:
    roots, compared = cases.CASES[name]()
    torch.manual_seed(1)
    return list(
        torch.autograd.grad(
            roots,
            compared[some],
            grad_outputs=None,
            allow_unused=True,
            create_graph=create_graph,
        )
    )


@pytest.mark.parametrize("some", [slice(None), slice(0, 1), slice(-1, None)], ids=str)
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_captured_gradients_are_those_of_grad(name: str, create_graph: bool, some: slice) -> None:
    expected = by_grad(name, create_graph, some)
    for kind in (BackwardStepper, BreakMode):
        roots, compared = cases.CASES[name]()
        torch.manual_seed(1)
        inputs = compared[some]
        with kind(roots, create_graph=create_graph, inputs=inputs) as stepped:
            while stepped.step() is not None:
                pass
            assert stepped.position == len(stepped.plan) <= len(stepped.graph.nodes)
            assert dict(stepped.arrived) == {}
            for found, wanted in zip(stepped.captured, expected, strict=True):
                assert same_bits(found, wanted), kind
                assert (found is not None and found.requires_grad) == (
                    wanted is not None and wanted.requires_grad
                )
        assert all(t.grad is None for t in compared if t.is_leaf)


@pytest.mark.parametrize("name", ["mlp", "lstm", "tensor_hooks_and_retain_grad", "several_roots"])
def test_going_back_forgets_what_was_captured(name: str) -> None:
    expected = by_grad(name, False, slice(None))
    roots, compared = cases.CASES[name]()
    stepper = BackwardStepper(roots, inputs=compared, watch=[t for t in compared if not t.is_leaf])
    stepper.run()
    seen = [list(stepper.captured)]
    while stepper.back() is not None:
        seen.append(list(stepper.captured))
    assert seen[-1] == [None] * len(compared)
    stepper.run()
    for found, wanted in zip(stepper.captured, expected, strict=True):
        assert same_bits(found, wanted)


def test_only_what_leads_to_an_input_runs() -> None:
    x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    y = x * 5
    z = y.sin() * w.exp()
    stepper = BackwardStepper(z, inputs=[y])
    assert [n.name for n in stepper.plan] == ["MulBackward0", "SinBackward0", "MulBackward0"]
    node = stepper.plan[-1]
    assert not stepper.runs(node) and stepper.runs(stepper.plan[0])
    with pytest.raises(ValueError, match="only captured"):
        stepper.edit(node, None)
    with pytest.raises(ValueError, match="not on the way"):
        stepper.run_to(next(n for n in stepper.graph.nodes if n.name == "ExpBackward0"))
    step = stepper.run_to(node)
    assert step.outgoing == () and same_bits(step.incoming[0], stepper.captured[0])
    assert stepper.captured[0] == torch.cos(y) * w.exp()
    unused = torch.ones((), requires_grad=True)
    assert BackwardStepper(z, inputs=[unused]).plan == []
    with pytest.raises(ValueError, match="does not require grad"):
        BackwardStepper(z, inputs=[torch.ones(())])


def test_edits_above_an_input_change_what_is_captured() -> None:
    x = torch.tensor(2.0, requires_grad=True)

    def captured(kind: Any) -> torch.Tensor | None:
        with kind((x * 5).exp(), inputs=[x]) as stepped:
            stepped.edit(stepped.plan[1], lambda grads: (grads[0] * 3,))
            stepped.run()
            return stepped.captured[0]

    expected = 15 * torch.exp(torch.tensor(10.0))
    assert same_bits(captured(BackwardStepper), captured(BreakMode))
    assert captured(BackwardStepper) == pytest.approx(expected.item())
    assert x.grad is None
