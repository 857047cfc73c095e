"""The check of a rule by finite differences: what is right passes, what is wrong is found."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.autograd import BackwardStepper
from engine.autograd.rules.finite_differences import (
    MAX_ARGUMENTS,
    MAX_ELEMENTS,
    check_rule,
)
from engine.autograd.rules.recorded_operation import CannotCheck
from engine.recording.argument_values import Keeper
from engine.recording.light.light_recorder import LightRecorder
from engine.recording.recorder import Recorder
from tests.engine.autograd.formulas.rule_cases import CASES


def check(step, call):
    (*ticks, result) = check_rule(step, call)
    assert ticks == [None] * len(result.elements)
    return result


def recorded(build):
    torch.manual_seed(0)
    with Recorder() as recorder:
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
    assert not result.passed and "on purpose" in result.notes[0]
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


# -- what is judged, and how closely


def scaled(*factors):
    """An edit of the first step: what the rule gave, times these."""

    def edit(step):
        outgoing = step.outgoing[0]
        return replace(step, outgoing=(outgoing * torch.tensor(factors, dtype=outgoing.dtype),))

    return edit


@pytest.mark.parametrize(
    ("dtype", "right", "wrong"),
    [
        (torch.float64, 1 + 5e-7, 1 + 1e-5),
        (torch.float32, 1 + 1e-4, 1 + 1e-3),
        (torch.bfloat16, 1 + 2**-6, 3.0),
        (torch.float16, 1 + 2**-9, 1.25),
    ],
)
def test_a_rule_may_be_off_by_the_rounding_of_its_dtype(dtype, right, wrong):
    x = torch.tensor([4.0, 4.0, 4.0], dtype=dtype, requires_grad=True)
    result = one(lambda: x.sqrt(), scaled(right, wrong, 1.0))
    assert [e.verdict for e in result.elements] == ["right", "wrong", "right"]
    assert [e.numeric for e in result.elements] == pytest.approx([0.25] * 3, abs=1e-8)


def test_the_least_precise_dtype_of_a_cast_decides():
    """The result is rounded to bfloat16, so the gradient in float32 is no closer."""
    x = torch.tensor([4.0], requires_grad=True)
    result = one(lambda: x.to(torch.bfloat16), scaled(1 + 2**-6))
    assert result.passed and result.elements[0].tolerance > 2**-6


def test_terms_that_cancel_round_as_their_sizes_do():
    """The derivative is 0, and the sum of the terms 2e6: float32 leaves a rest, not a fault."""
    x = torch.tensor(1.0, requires_grad=True)
    (root,), recording = recorded(lambda: x.expand(2) * 1.0)
    stepper = BackwardStepper(root, torch.tensor([1e6, -1e6]))
    stepper.step()
    step = stepper.step()
    assert step is not None
    call = recording.call_of(step.node.sequence)
    for leftover, passed in ((0.5, True), (50.0, False)):
        result = check(replace(step, outgoing=(torch.tensor(leftover),)), call)
        assert result.passed is passed and result.elements[0].numeric == 0


@pytest.mark.parametrize(
    ("slope", "verdict"),
    [(0.0, "kink"), (0.5, "kink"), (1.0, "kink"), (-0.1, "wrong"), (1.1, "wrong")],
)
def test_at_a_kink_any_slope_between_the_two_sides_is_allowed(slope, verdict):
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    result = one(
        lambda: x.relu(),
        lambda step: replace(step, outgoing=(torch.tensor([slope], dtype=torch.float64),)),
    )
    (element,) = result.elements
    assert element.verdict == verdict and element.numeric == pytest.approx(0.5)
    assert element.difference == pytest.approx(abs(slope - 0.5))


def test_a_bend_is_no_kink():
    """The slopes of x² on the two sides of 0 come closer as the step gets smaller, so a slope
    between them is not right for it."""
    x = torch.tensor([1e-9], dtype=torch.float64, requires_grad=True)
    assert one(lambda: x.square()).elements[0].verdict == "right"
    (element,) = one(lambda: x.square(), scaled(1_500.0)).elements
    assert element.analytic == pytest.approx(3e-6) and element.verdict == "wrong"


@pytest.mark.parametrize("at", [1e-6, 1.0, 1e6, -1e6])
def test_large_and_small_numbers_have_steps_of_their_own_size(at):
    x = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    (element,) = one(lambda: x.square()).elements
    assert element.verdict == "right"
    assert element.numeric == pytest.approx(2 * at, rel=1e-8, abs=1e-12)


def test_an_undefined_gradient_is_zero():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    result = one(lambda: x * 3.0, lambda step: replace(step, outgoing=(None,)))
    assert [e.analytic for e in result.elements] == [0, 0]
    assert [e.verdict for e in result.elements] == ["wrong", "wrong"]


def test_a_result_without_a_gradient_takes_no_part():
    x = torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64, requires_grad=True)
    (variance, _), recording = recorded(lambda: torch.var_mean(x, 0))
    stepper = BackwardStepper(variance)
    step = stepper.step()
    assert step.incoming[1] is None
    result = check(step, recording.call_of(step.node.sequence))
    assert result.passed
    (plain,) = torch.autograd.grad(torch.var(x, 0), x)
    assert [e.analytic for e in result.elements] == pytest.approx(plain.tolist())


def test_nan_and_infinity_elsewhere_do_not_hide_the_rest():
    x = torch.tensor([0.0, -1.0, 4.0], dtype=torch.float64, requires_grad=True)
    result = one(lambda: x.log(), scaled(1.0, 1.0, 1.01))
    assert [e.verdict for e in result.elements][2] == "wrong"
    assert one(lambda: x.log()).elements[2].verdict == "right"


# -- complex numbers, many inputs, many elements


def test_complex_inputs_are_left_out_with_a_note_and_complex_results_count_by_their_real_part():
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    x = torch.tensor([2.0, 5.0], requires_grad=True)
    (root,), recording = recorded(lambda: z * x)
    stepper = BackwardStepper(root, torch.tensor([1 + 1j, 2 - 3j]))
    step = stepper.step()
    result = check(step, recording.call_of(step.node.sequence))
    assert result.notes == ("Input 0 is complex: only real ones are checked.",)
    assert result.counts == {1: 2} and result.passed
    (plain,) = torch.autograd.grad(z * x, x, torch.tensor([1 + 1j, 2 - 3j]))
    assert [e.numeric for e in result.elements] == pytest.approx(plain.tolist(), rel=1e-6)


@pytest.mark.parametrize("count", [MAX_ARGUMENTS, MAX_ARGUMENTS + 2])
def test_the_first_of_many_inputs_are_checked(count):
    parts = [torch.randn(2, requires_grad=True) for _ in range(count)]
    result = one(lambda: torch.cat(parts))
    assert result.counts == dict.fromkeys(range(MAX_ARGUMENTS), 2) and result.passed
    note = f"Only the first {MAX_ARGUMENTS} of {count} inputs are checked."
    assert result.notes == ((note,) if count > MAX_ARGUMENTS else ())


def test_inputs_that_need_no_gradient_are_counted_and_not_checked():
    weight = torch.randn(3, 2, requires_grad=True)
    result = one(lambda: torch.randn(4, 3) @ weight)
    assert result.counts == {1: 6} and {e.input for e in result.elements} == {1}


@pytest.mark.parametrize("count", [0, MAX_ELEMENTS, MAX_ELEMENTS + 1])
def test_up_to_a_bound_all_elements_are_checked(count):
    x = torch.rand(count, 1, requires_grad=True)
    result = one(lambda: x.exp())
    elements = [e.element for e in result.elements]
    assert result.counts == {0: count} and elements == sorted(elements)
    if count <= MAX_ELEMENTS:
        assert elements == [(i, 0) for i in range(count)]


def test_a_seed_draws_the_same_elements_again_and_another_seed_others():
    (root,), recording = recorded(lambda: torch.rand(5_000, requires_grad=True) * 2)
    step = BackwardStepper(root, torch.ones_like(root)).step()
    assert step is not None
    call = recording.call_of(step.node.sequence)

    def drawn(seed):
        (*_, result) = check_rule(step, call, seed)
        return [e.element for e in result.elements]

    assert drawn(1) == drawn(1) != drawn(2)


def test_no_note_on_an_embedding_that_is_right():
    weight = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    result = one(lambda: F.embedding(torch.tensor([0, 1, 1]), weight))
    assert result.passed and result.notes == ()
    wrong = one(lambda: weight.exp(), lambda step: replace(step, outgoing=(step.outgoing[0] * 2,)))
    assert not wrong.passed and wrong.notes == ()


# -- what cannot be checked


def refusal(step, call):
    with pytest.raises(CannotCheck) as refused:
        list(check_rule(step, call))
    return refused.value


def test_only_an_unrecorded_operation_is_helped_by_a_trace():
    x = torch.randn(3, requires_grad=True)
    step = BackwardStepper(x.exp(), torch.ones(3)).step()
    assert refusal(step, None).unrecorded
    with LightRecorder() as light:  # without values
        y = x.exp()
    step = BackwardStepper(y, torch.ones(3)).step()
    call = light.recording.call_of(step.node.sequence)
    assert call is not None and refusal(step, call).unrecorded
    stepper = BackwardStepper(x * 2, torch.ones(3))
    stepper.run()
    assert not refusal(stepper.last, None).unrecorded


def test_a_value_that_was_not_kept_is_named():
    x = torch.randn(100, requires_grad=True)
    with Recorder(keeper=Keeper(max_bytes=500)) as recorder:
        y = (x * 2).exp()
    step = BackwardStepper(y, torch.ones(100)).step()
    call = recorder.recording.call_of(step.node.sequence)
    assert "was not kept: not kept: the values" in str(refusal(step, call))


def test_a_function_of_several_operators_is_none_to_run_again():
    x = torch.randn(2, 3, requires_grad=True)
    (root,), recording = recorded(lambda: F.softmax(x, 1))
    step = BackwardStepper(root, torch.ones(2, 3)).step()
    call = recording.chain_of(step.node.sequence)[0]
    assert call.kind == "function"
    refused = refusal(step, call)
    assert (
        str(refused).startswith("softmax is not a single operator") and "gradcheck" in refused.hint
    )


def test_a_call_that_does_not_fit_the_node_is_refused():
    """Calls of another node: fewer tensors, other shapes, results of another shape."""
    x, y = torch.rand(3, requires_grad=True), torch.rand(2, requires_grad=True)
    roots, recording = recorded(lambda: (x * x, x.exp(), y.exp(), y.sum()))
    product, exp, small, total = (
        BackwardStepper(root, torch.ones_like(root)).step() for root in roots
    )
    assert total is not None
    of_small = recording.call_of(small.node.sequence)
    assert "more inputs than the operator has tensors" in str(
        refusal(product, recording.call_of(exp.node.sequence))
    )
    assert "other results than the node has outputs" in str(refusal(exp, of_small))
    assert "input 0 belongs to" in str(
        refusal(replace(total, node=exp.node), recording.call_of(total.node.sequence))
    )


class Fussy(torch.autograd.Function):
    """Runs in float32 only."""

    @staticmethod
    def forward(ctx, x, options):
        if x.dtype != torch.float32:
            raise TypeError("float32, please")
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


def test_a_function_that_fails_in_float64_or_has_other_arguments_is_refused():
    x = torch.randn(2, requires_grad=True)
    for options, words in (
        (None, "Fussy does not run in float64: float32, please"),
        (object(), "An argument of type object was not kept."),
    ):
        (root,), recording = recorded(lambda options=options: Fussy.apply(x, options))
        step = BackwardStepper(root, torch.ones(2)).step()
        assert str(refusal(step, recording.call_of(step.node.sequence))) == words


@pytest.mark.parametrize(("error", "is_rounding"), [(2e-4, True), (4e-4, False)])
def test_a_result_that_is_another_one_is_told_from_rounding(error, is_rounding):
    """One part in 10,000 is allowed: of the element, of the largest one, and of 1."""
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    (root,), recording = recorded(lambda: x * 1.0)
    call = recording.call_of(root.grad_fn._sequence_nr())
    step = BackwardStepper(root, torch.ones_like(root)).step()
    call.result.tensor = root.detach() + torch.tensor([error, 0.0, 0.0])
    if is_rounding:
        assert check(step, call).passed
    else:
        with pytest.raises(CannotCheck, match="another result"):
            check(step, call)
