"""The check of a rule by finite differences: what is right passes, what is wrong is found."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.autograd import BackwardStepper
from engine.autograd.rules.finite_differences import MAX_ELEMENTS, CannotCheck, check_rule
from engine.recording.recorder import Recorder
from tests.engine.autograd.formulas.rule_cases import CASES


def check(step, call):
    (*ticks, result) = check_rule(step, call)
    assert ticks == [None] * len(result.elements)
    return result


def recorded(build):
    torch.manual_seed(0)
    with Recorder(keep_values=True) as recorder:
        built = build()
    return [built] if isinstance(built, torch.Tensor) else list(built), recorder.recording


DRAWS = {"NativeDropoutBackward0", "RreluWithNoiseBackward0"}
NOT_ONE_OPERATOR = {"CopySlices"}  # the part that was written has a node of its own inside


def checks(roots, recording):
    """The check of every step that can be checked, with its node's name, or the refusal."""
    roots = [root for root in roots if root.requires_grad]
    torch.manual_seed(1)
    stepper = BackwardStepper(roots, [torch.randn_like(root) for root in roots])
    while (step := stepper.step()) is not None:
        if step.node.is_leaf:
            continue
        try:
            yield step.node.name, check(step, recording.call_of(step.node.sequence))
        except CannotCheck as refusal:
            yield step.node.name, refusal


@pytest.mark.parametrize("name", sorted(set(CASES) - DRAWS - {"EmbeddingBackward0"}))
def test_torchs_own_rules_pass(name):
    found = list(checks(*recorded(CASES[name])))
    for node, result in found:
        if isinstance(result, CannotCheck):
            assert node in NOT_ONE_OPERATOR, result
        else:
            assert result.passed, (node, [e for e in result.elements if e.verdict == "wrong"])
    assert name in dict(found)


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_random_operators_are_refused_with_the_reason(name):
    refusal = dict(checks(*recorded(CASES[name])))[name]
    assert isinstance(refusal, CannotCheck) and "random" in str(refusal)


def one(build, edit=lambda step: step):
    """The check of the first step under one tensor."""
    (root,), recording = recorded(build)
    stepper = BackwardStepper(root, torch.ones_like(root))
    step = edit(stepper.step())
    return check(step, recording.call_of(step.node.sequence))


def test_a_float32_network_in_training_passes():
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.BatchNorm2d(3),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12, 4),
        nn.GELU(),
        nn.LayerNorm(4),
    )
    x, y = torch.randn(5, 1, 6, 6), torch.randint(0, 4, (5,))
    found = list(checks(*recorded(lambda: F.cross_entropy(net(x), y))))
    assert all(result.passed for _, result in found)
    assert {"ConvolutionBackward0", "NativeBatchNormBackward0"} <= dict(found).keys()


def test_numbers_are_those_of_the_rule_and_of_the_difference():
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    result = one(lambda: x**3)
    assert result.op == "aten::pow.Tensor_Scalar"
    assert [e.element for e in result.elements] == [(0,), (1,)]
    assert [e.analytic for e in result.elements] == [3.0, 27.0]
    assert [e.numeric for e in result.elements] == pytest.approx([3.0, 27.0], abs=1e-7)
    assert result.passed and result.counts == {0: 2}


def test_a_rule_that_gives_something_else_is_found():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)

    def wrong(step):
        return replace(step, outgoing=(step.outgoing[0] * torch.tensor([1.0, 1.001]),))

    result = one(lambda: x.exp(), wrong)
    assert [e.verdict for e in result.elements] == ["right", "wrong"]
    assert not result.passed
    assert result.elements[1].difference == pytest.approx(0.001 * torch.e**2, rel=1e-4)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x.relu(),
        lambda x: x.abs(),
        lambda x: F.leaky_relu(x, 0.1),
        lambda x: x.clamp(min=0.0),
    ],
)
def test_a_kink_is_told_apart(build):
    x = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    result = one(lambda: build(x))
    assert [e.verdict for e in result.elements] == ["right", "kink", "right"]
    assert result.passed


@pytest.mark.parametrize("operation", [torch.sqrt, torch.log, torch.rsqrt, torch.reciprocal])
def test_where_a_rule_is_not_finite_no_difference_can_tell(operation):
    """And the elements beside it are checked as ever."""
    x = torch.tensor([4.0, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    result = one(lambda: operation(x))
    assert [e.verdict for e in result.elements] == ["right", "edge", "right"]
    wrong = one(
        lambda: operation(x), lambda step: replace(step, outgoing=(step.outgoing[0] * 1.1,))
    )
    assert [e.verdict for e in wrong.elements] == ["wrong", "edge", "wrong"]


def test_large_arguments_are_sampled():
    result = one(lambda: torch.randn(40, 40, requires_grad=True) @ torch.randn(40, 3))
    assert result.counts == {0: 1600}
    assert 32 < len(result.elements) <= MAX_ELEMENTS
    assert len({e.element for e in result.elements}) == len(result.elements)


def test_an_operation_in_place_is_checked_on_copies():
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    (root,), recording = recorded(lambda: x.clone().sigmoid_())
    before = root.detach().clone()
    stepper = BackwardStepper(root, torch.ones_like(root))
    step = stepper.step()
    assert check(step, recording.call_of(step.node.sequence)).passed
    assert torch.equal(root, before) and x.grad is None


def test_values_overwritten_after_forward_do_not_mislead():
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)

    def build():
        y = x * 2
        z = y + 1
        y.detach().fill_(100.0)
        return z

    assert all(result.passed for _, result in checks(*recorded(build)))


def test_without_a_recording_it_says_what_to_do():
    x = torch.randn(3, requires_grad=True)
    step = BackwardStepper(x.exp(), torch.ones(3)).step()
    assert step is not None
    with pytest.raises(CannotCheck, match="not recorded") as refusal:
        list(check_rule(step, None))
    assert "gradcheck" in refusal.value.hint


def test_a_leaf_has_no_rule():
    x = torch.randn((), requires_grad=True)
    stepper = BackwardStepper(x * 2)
    stepper.run()
    assert stepper.last is not None
    with pytest.raises(CannotCheck, match="leaf"):
        list(check_rule(stepper.last, None))


def test_padding_rows_of_an_embedding_differ_on_purpose():
    weight = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([0, 1, 1])
    result = one(lambda: F.embedding(index, weight, padding_idx=1))
    assert not result.passed and "On purpose" in result.notes[0]
    assert {e.element[0] for e in result.elements if e.verdict == "wrong"} == {1}


class Cube(torch.autograd.Function):
    """With an integer tensor and a number among its arguments."""

    @staticmethod
    def forward(ctx, index, x, slope):
        ctx.save_for_backward(index, x)
        ctx.slope = slope
        return x[index] ** 3

    @staticmethod
    def backward(ctx, g):
        index, x = ctx.saved_tensors
        return None, torch.zeros_like(x).index_add(0, index, g * ctx.slope * x[index] ** 2), None


def test_a_right_backward_of_a_python_function_passes():
    x = torch.randn(4, requires_grad=True)
    result = one(lambda: Cube.apply(torch.tensor([0, 2, 2]), x, 3.0))
    assert result.passed and result.counts == {1: 4} and result.op == "Cube"


def test_a_wrong_backward_of_a_python_function_is_found():
    x = torch.tensor([1.0, 2.0, 0.0], requires_grad=True)
    result = one(lambda: Cube.apply(torch.tensor([0, 1]), x, 2.0))
    assert [e.verdict for e in result.elements] == ["wrong", "wrong", "right"]
    assert [e.numeric for e in result.elements] == pytest.approx([3.0, 12.0, 0.0], abs=1e-5)
