"""Stepping backward against torch's own backward()."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from engine import autograd
from engine.autograd import BackwardStepper, Step
from engine.autograd.graph.engine_run import execution_order
from tests.engine.autograd import backward_cases as cases

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(Sparse invariant|sparse gradient|ragged).*:UserWarning"
)


def same_bits(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    if a.layout != b.layout or a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.layout == torch.sparse_coo:
        a, b = a.detach().coalesce(), b.detach().coalesce()
        return torch.equal(a.indices(), b.indices()) and same_bits(a.values(), b.values())
    a, b = a.detach(), b.detach()
    if a.is_complex():
        a, b = (torch.view_as_real(t.resolve_conj()) for t in (a, b))
    return a.stride() == b.stride() and torch.equal(a.nan_to_num(7), b.nan_to_num(7))


def kept(tensors: list[torch.Tensor]) -> list[torch.Tensor | None]:
    return [None if t.grad is None else t.grad.detach().clone() for t in tensors]


def assert_grads(tensors: list[torch.Tensor], expected: list[torch.Tensor | None]) -> None:
    for i, (t, wanted) in enumerate(zip(tensors, expected, strict=True)):
        assert same_bits(t.grad, wanted), f"tensor {i}: {t.grad} is not {wanted}"


def by_backward(name: str, create_graph: bool = False) -> list[torch.Tensor | None]:
    roots, compared = cases.CASES[name]()
    torch.manual_seed(1)
    torch.autograd.backward(roots, create_graph=create_graph)
    grads = kept(compared)
    for t in compared:
        t.grad = None  # with create_graph, a gradient and its leaf hold each other
    return grads


@pytest.mark.parametrize(
    ("name", "create_graph"),
    [(name, False) for name in cases.CASES]
    + [(name, True) for name in cases.CASES if name != "checkpoint_with_reentry"],  # torch refuses
)
def test_stepping_leaves_the_bits_of_backward(name: str, create_graph: bool) -> None:
    expected = by_backward(name, create_graph)
    roots, compared = cases.CASES[name]()
    torch.manual_seed(1)
    with BackwardStepper(roots, create_graph=create_graph) as stepper:
        ran = [step.node for step in iter(stepper.step, None)]
        assert ran == stepper.plan and len(ran) == len(stepper.graph.nodes)
    assert any(g is not None for g in expected)
    assert_grads(compared, expected)
    for t in compared:
        t.grad = None


@pytest.mark.parametrize("name", cases.CASES)
def test_the_plan_is_the_order_in_which_the_engine_runs(name: str) -> None:
    roots, _ = cases.CASES[name]()
    plan = execution_order(roots)
    ran = []
    for fn in plan:
        fn.register_hook(lambda grad_inputs, grad_outputs, fn=fn: ran.append(fn))
    torch.autograd.backward(roots)
    assert ran == plan


@pytest.mark.parametrize("name", cases.CASES)
def test_going_back_to_any_point_and_on_again_changes_nothing(name: str) -> None:
    expected = by_backward(name)
    roots, compared = cases.CASES[name]()
    watch = [t for t in compared if not t.is_leaf]
    torch.manual_seed(1)
    with BackwardStepper(roots, watch=watch) as stepper:
        seen: list[tuple[list[torch.Tensor | None], Step]] = []
        before = kept(compared)
        while (step := stepper.step()) is not None:
            seen.append((before, step))
            before = kept(compared)
        stride = max(1, len(seen) // 7)
        for target in range(len(seen) - 1, -1, -stride):
            while stepper.position > target:
                assert stepper.back() is not None
            assert_grads(compared, seen[target][0])
            for _, old in seen[target:]:
                new = stepper.step()
                assert new is not None and new.node is old.node
                for a, b in zip(
                    new.incoming + new.outgoing, old.incoming + old.outgoing, strict=True
                ):
                    assert same_bits(a, b)
            assert_grads(compared, expected)
        stepper.reset()
        assert stepper.position == 0 and stepper.back() is None and stepper.last is None
        assert_grads(compared, [None] * len(compared))


@pytest.mark.parametrize(
    ("name", "create_graph"),
    [(name, False) for name in cases.CASES]
    + [(name, True) for name in cases.CASES if name != "checkpoint_with_reentry"],
)
@pytest.mark.parametrize("limit", [3, 512])
def test_running_is_the_same_as_stepping(
    monkeypatch: pytest.MonkeyPatch, name: str, create_graph: bool, limit: int
) -> None:
    monkeypatch.setattr("engine.autograd.backward.stepper.NODES_OF_A_RUN", limit)

    def made() -> tuple[BackwardStepper, list[torch.Tensor]]:
        roots, compared = cases.CASES[name]()
        torch.manual_seed(1)
        watch = [t for t in compared if not t.is_leaf]
        return BackwardStepper(roots, create_graph=create_graph, watch=watch), compared

    single, expected = made()
    waiting = []
    while single.step() is not None:
        waiting.append([(n, single.pending(n)) for n in sorted(single.arrived)])
    stepper, compared = made()
    seen = []

    def until(s: BackwardStepper) -> bool:
        seen.append([(n, s.pending(n)) for n in sorted(s.arrived)])
        return s.position % 5 == 0

    while stepper.next_node is not None:
        stepper.run(until)
    assert len(seen) == len(waiting) == stepper.position
    for now, then in zip(seen, waiting, strict=True):
        assert [n for n, _ in now] == [n for n, _ in then]
        for (_, some), (_, others) in zip(now, then, strict=True):
            assert all(same_bits(a, b) for a, b in zip(some, others, strict=True))
    for node in stepper.plan:
        a, b = stepper.step_of(node), single.step_of(node.id)
        assert a is not None and b is not None
        for one, other in zip(a.incoming + a.outgoing, b.incoming + b.outgoing, strict=True):
            assert same_bits(one, other)
    assert_grads(compared, kept(expected))
    stepper.reset()
    assert_grads(compared, [None] * len(compared))
    for t in (*compared, *expected):
        t.grad = None


def test_steps_hold_the_numbers_of_the_rule() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    y = x**3
    steps = list(iter(BackwardStepper(y, names={"x": x}).step, None))
    assert [s.node.name for s in steps] == ["PowBackward0", "AccumulateGrad"]
    assert [s.node.label for s in steps] == ["", "x"]
    assert (steps[0].incoming, steps[0].outgoing) == ((torch.tensor(1.0),), (torch.tensor(27.0),))
    assert (steps[1].incoming, steps[1].outgoing) == ((torch.tensor(27.0),), ())
    assert [s.position for s in steps] == [1, 2]


def test_outgoing_is_summed_to_the_shape_of_its_target() -> None:
    bias = torch.zeros(3, requires_grad=True)
    y = (torch.ones(5, 3) + bias).sum()
    stepper = BackwardStepper(y)
    stepper.step()
    step = stepper.step()
    assert step is not None and step.node.name == "AddBackward0"
    assert step.outgoing[0] is None  # torch.ones needs no gradient
    assert same_bits(step.outgoing[1], torch.full((3,), 5.0))


def test_gradients_add_up_over_passes_and_going_back_takes_out_only_its_own() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    for expected in (6.0, 12.0, 18.0):
        BackwardStepper(x**2).run()
        assert x.grad is not None and x.grad.item() == expected
    same = x.grad
    stepper = BackwardStepper(x**2)
    stepper.run()
    assert x.grad.item() == 24.0
    stepper.reset()
    assert x.grad is same and same.item() == 18.0


def test_create_graph_can_be_stepped_again() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    derivatives = []
    y = x**3
    for _ in range(3):
        BackwardStepper(y, create_graph=True).run()
        assert x.grad is not None
        y, x.grad = x.grad, None
        derivatives.append(y.item())
    assert derivatives == [27.0, 18.0, 6.0]


def test_gradient_for_roots_that_are_no_scalars() -> None:
    v = torch.tensor([1.0, 10.0])
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    BackwardStepper(x**2, v).run()
    assert_grads([x], [torch.tensor([4.0, 60.0])])
    x.grad = None
    BackwardStepper([x**2, x.sum()], [v, None]).run()
    assert_grads([x], [torch.tensor([5.0, 61.0])])


def test_pending_gradients_accumulate_at_a_node() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 5
    stepper = BackwardStepper(y.sin() + y * 3)
    mul = stepper.graph.node_of(y.grad_fn)
    seen = [stepper.pending(mul)]
    while stepper.next_node is not mul:
        stepper.step()
        seen.append(stepper.pending(mul))
    total = torch.cos(torch.tensor(10.0)) + 3
    assert seen[0] == (None,) and seen[-1][0] == total
    assert torch.tensor(3.0) in [s[0] for s in seen] or total - 3 in [s[0] for s in seen]


def test_run_to_goes_both_ways() -> None:
    roots, _compared = cases.CASES["mlp"]()
    stepper = BackwardStepper(roots)
    middle = stepper.plan[len(stepper.plan) // 2]
    step = stepper.run_to(middle)
    assert step.node is middle and stepper.last is step
    stepper.run()
    assert stepper.position == len(stepper.plan) and stepper.step() is None
    again = stepper.run_to(middle.id)
    assert again is step and stepper.position == step.position
    assert stepper.step_of(middle) is step and stepper.step_of(stepper.plan[-1]) is None


@pytest.mark.parametrize("name", ["mlp", "cnn_with_batch_norm", "tensor_hooks_and_retain_grad"])
def test_an_edit_equals_a_pre_hook(name: str) -> None:
    roots, compared = cases.CASES[name]()
    stepper = BackwardStepper(roots, watch=[t for t in compared if not t.is_leaf])
    candidates = [n for n in stepper.plan if len(n.outputs) == 1 and n.outputs[0].shape]
    place = stepper.plan.index(candidates[len(candidates) // 2])
    node = stepper.plan[place]
    edited = torch.randn([int(n) for n in node.outputs[0].shape])
    stepper.step()
    stepper.edit(node, edited)
    stepper.run()
    stepped = kept(compared)
    stepper.run_to(0)
    stepper.run()
    assert_grads(compared, stepped)

    roots, compared = cases.CASES[name]()
    execution_order(roots)[place].register_prehook(lambda _: (edited,))
    torch.autograd.backward(roots)
    assert_grads(compared, stepped)
    assert not all(same_bits(a, b) for a, b in zip(stepped, by_backward(name), strict=True)), (
        "the edit changed nothing"
    )


def test_an_edit_can_cut_and_revive_and_be_undone() -> None:
    x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    y = (x * w).exp()
    stepper = BackwardStepper(y)
    mul = stepper.plan[1]
    stepper.edit(mul, None)
    stepper.run()
    assert (x.grad, w.grad) == (None, None)
    with pytest.raises(ValueError, match="has shape"):
        stepper.edit(mul, torch.ones(2))
    with pytest.raises(ValueError, match="already run"):
        stepper.unedit(mul)
    assert stepper.next_node is None
    stepper.edit(stepper.plan[0], [None])  # it has run: the pass goes back before it
    assert stepper.position == 0
    stepper.edit(mul, torch.tensor(10.0))
    stepper.run()
    assert_grads([x, w], [torch.tensor(30.0), torch.tensor(20.0)])
    stepper.reset()
    stepper.unedit(mul)
    stepper.unedit(stepper.plan[0])
    stepper.run()
    assert_grads([x, w], [3 * y.detach(), 2 * y.detach()])


def test_edits_that_do_not_fit_are_refused() -> None:
    stepper = BackwardStepper((torch.ones(3, requires_grad=True) * 2).sum())
    node = stepper.plan[1]
    with pytest.raises(ValueError, match=r"shape \(2,\), not \(3,\)"):
        stepper.edit(node, torch.ones(2))
    with pytest.raises(ValueError, match=r"dtype torch.float64"):
        stepper.edit(node, torch.ones(3, dtype=torch.float64))
    with pytest.raises(ValueError, match="takes 1 gradients"):
        stepper.edit(node, [None, None])
    with pytest.raises(ValueError, match="not a node of this graph"):
        stepper.edit(99, None)
    other = BackwardStepper(torch.ones((), requires_grad=True) * 1)
    with pytest.raises(ValueError, match="not a node of this graph"):
        stepper.run_to(other.plan[0])


def test_roots_that_cannot_be_stepped_are_explained() -> None:
    with pytest.raises(ValueError, match="does not require grad"):
        BackwardStepper(torch.ones(3))
    with pytest.raises(ValueError, match="only for a scalar root"):
        BackwardStepper(torch.ones(3, requires_grad=True) * 1)
    with pytest.raises(ValueError, match="shape"):
        BackwardStepper(torch.ones(3, requires_grad=True) * 1, torch.ones(4))
    with pytest.raises(ValueError, match="2 roots"):
        BackwardStepper([torch.ones((), requires_grad=True)] * 2, [torch.ones(())])
    with pytest.raises(ValueError, match="at least one"):
        BackwardStepper([])


def test_an_error_leaves_the_stepper_where_it_stood() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    loss = (x * x).sin()
    stepper = BackwardStepper(loss)
    stepper.step()
    loss.backward()  # frees the graph under the stepper
    grad = x.grad
    with pytest.raises(RuntimeError, match="second time"):
        stepper.step()
    assert stepper.position == 1 and x.grad is grad
    assert stepper.pending(stepper.plan[1])[0] is not None


def test_errors_of_hooks_come_out_and_the_step_can_be_repeated() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    handle = y.register_hook(lambda g: 1 / 0)
    stepper = BackwardStepper(y.exp())
    stepper.step()
    with pytest.raises(ZeroDivisionError):
        stepper.step()
    handle.remove()
    stepper.run()
    assert_grads([x], [3 * y.exp().detach()])


def test_no_hook_stays_behind() -> None:
    net = nn.Linear(3, 1)
    stepper = BackwardStepper(net(torch.ones(2, 3)).sum())
    stepper.run()
    position = stepper.position
    net.zero_grad()
    net(torch.ones(2, 3)).sum().backward()  # reuses the AccumulateGrad nodes
    assert_grads([net.weight, net.bias], [torch.full((1, 3), 2.0), torch.tensor([2.0])])
    assert stepper.position == position


def test_running_calls_each_hook_once_and_stops_inside_a_long_chain() -> None:
    called: list[int] = []
    x = torch.ones(3, requires_grad=True)
    y = x
    for i in range(40):
        y = y * 1.5
        y.register_hook(lambda g, i=i: called.append(i))
    stepper = BackwardStepper(y.sum())
    stepper.run(lambda s: s.position == 11)
    assert stepper.position == 11 and called == [*range(39, 29, -1)]
    stepper.run()
    assert called == [*range(39, -1, -1)]
    x.grad = None
    stepper.reset()
    y.sum().backward()
    assert len(called) == 80  # none of the stepper's hooks is left to stop this


def test_planning_runs_no_hook_and_touches_no_gradient() -> None:
    called = []
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).sum()
    y.register_hook(lambda g: called.append("tensor"))
    y.grad_fn.register_prehook(lambda g: called.append("node"))
    x.register_hook(lambda g: called.append("leaf"))
    stepper = BackwardStepper(y)
    assert (called, x.grad) == ([], None)
    stepper.run()
    assert called == ["tensor", "node", "leaf"]


def test_the_documented_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = autograd.__doc__ or ""
    code = text.split("```python\n")[1].split("```")[0]
    namespace: dict = {}
    exec(code.replace("tensorlab.engine", "engine"), namespace)
    told = [line.strip().removeprefix("# ") for line in code.splitlines()]
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == [line for line in told if " -> (" in line]
    assert namespace["x"].grad.item() == 270.0


def test_a_deep_graph_steps_and_goes_quietly() -> None:
    x = torch.ones((), requires_grad=True)
    y = x
    for _ in range(3_000):
        y = y * 1.001
    stepper = BackwardStepper(y)
    stepper.run()
    stepped = x.grad
    x.grad = None
    y.backward()
    assert same_bits(stepped, x.grad)
    stepper.close()
    assert stepper.step() is None


def test_a_retained_gradient_that_never_comes_stays_none() -> None:
    """A Python Function runs also where nothing arrives; its result's `.grad` stays None."""

    def made() -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.tensor(2.0, requires_grad=True)
        inner = cases.NoGradient.apply(x * 3)
        inner.retain_grad()
        return cases.NoGradient.apply(inner), inner

    loss, inner = made()
    loss.backward()
    assert inner.grad is None
    loss, inner = made()
    with BackwardStepper(loss, watch=[inner]) as stepper:
        stepper.run()
        assert inner.grad is None
        stepper.reset()
        assert inner.grad is None


def test_beside_an_undefined_gradient_hooks_run_once() -> None:
    """Where nothing arrives, a run of many nodes would take those below out of their order, and
    would have called their hooks by the time that is seen."""
    called: list[str] = []

    def made() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        x = torch.tensor(2.0, requires_grad=True)
        inner = x.sin()
        inner.retain_grad()
        inner.register_hook(lambda _: called.append("inner"))
        aside = x.cos()  # runs between the two sines
        outer = inner.sin()
        return outer + cases.NoGradient.apply(aside), inner, x

    loss, *tensors = made()
    loss.backward()
    wanted = [t.grad for t in tensors]
    assert called == ["inner"]
    called.clear()
    loss, *tensors = made()
    with BackwardStepper(loss, watch=tensors[:1]) as stepper:
        stepper.run()
    assert called == ["inner"]
    assert all(same_bits(t.grad, grad) for t, grad in zip(tensors, wanted, strict=True))


@pytest.mark.parametrize("single", [True, False])
def test_a_step_whose_post_accumulate_hook_fails_adds_nothing(single: bool) -> None:
    x = torch.ones(3, requires_grad=True)
    failing = [True]

    def hook(_: torch.Tensor) -> None:
        if failing:
            raise ZeroDivisionError

    x.register_post_accumulate_grad_hook(hook)
    x.grad = torch.ones(3)
    stepper = BackwardStepper((x * 2).sum())
    with pytest.raises(ZeroDivisionError):
        list(iter(stepper.step, None)) if single else stepper.run()
    assert_grads([x], [torch.ones(3)])
    failing.clear()
    stepper.run()
    assert_grads([x], [torch.full((3,), 3.0)])


def test_a_checkpoint_goes_back_wherever_its_function_is_kept() -> None:
    """`.grad` that a checkpoint's own backward has added to is found by the function it holds: a
    method, a function with a module in its closure, a partial, one that names a global."""
    net = nn.Linear(3, 3)

    class Block:
        def __init__(self) -> None:
            self.net = net

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x)

    def given(x: torch.Tensor, module: nn.Module) -> torch.Tensor:
        return module(x)

    by_name: dict = {"net": net}
    exec("def run(x):\n    return (lambda y: net(y))(x)", by_name)
    functions = [net, Block().forward, lambda x: net(x), by_name["run"]]
    functions.append(functools.partial(given, module=net))
    x = torch.ones(2, 3, requires_grad=True)
    for function in functions:
        for before in (None, torch.ones(3)):
            net.weight.grad, net.bias.grad = None, before
            loss = checkpoint(function, x, use_reentrant=True).sum()
            stepper = BackwardStepper(loss)
            stepper.run()
            assert net.weight.grad is not None
            assert_grads([net.bias], [torch.full((3,), 2.0 if before is None else 3.0)])
            stepper.reset()
            assert net.weight.grad is None and net.bias.grad is before
            assert_grads([net.bias], [None if before is None else torch.ones(3)])


def test_what_is_no_tensor_is_refused_in_words() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    for root in (3, "x", [y.sum(), 2.0], None):
        with pytest.raises(TypeError, match="read from a tensor, or several"):
            BackwardStepper(root)  # type: ignore[arg-type]
    for gradient in (2.0, [2.0], "ones"):
        with pytest.raises((TypeError, ValueError), match=r"`gradient` is a|as many gradients"):
            BackwardStepper(y, gradient)  # type: ignore[arg-type]
    stepper = BackwardStepper(y, torch.ones(3))
    for edit, words in ((2.0, "a tuple with one per output"), ([2.0], "a tensor, or None")):
        with pytest.raises(TypeError, match=words):
            stepper.edit(0, edit)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="its id"):
        stepper.run_to("leaf")  # type: ignore[arg-type]


def test_an_edit_keeps_the_layout_as_torch_wants_it() -> None:
    net = nn.Embedding(5, 2, sparse=True)
    stepper = BackwardStepper(net(torch.tensor([1, 1])).sum())
    leaf = stepper.plan[-1]
    stepper.edit(leaf, lambda grads: (grads[0].to_dense(),))  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"layout torch.strided, not torch.sparse_coo"):
        stepper.run()
    stepper.edit(leaf, lambda grads: (grads[0] * 2,))  # type: ignore[operator]
    stepper.run()
    assert net.weight.grad is not None and net.weight.grad.to_dense()[1].tolist() == [4.0, 4.0]


@pytest.mark.parametrize("single", [True, False])
def test_under_anomaly_detection_only_real_errors_are_told(single: bool) -> None:
    def run(stepper: BackwardStepper) -> None:
        if single:
            list(iter(stepper.step, None))
        else:
            stepper.run()

    with pytest.warns(UserWarning, match="Anomaly Detection"):
        detecting = torch.autograd.detect_anomaly(check_nan=True)
    with detecting:
        x = torch.zeros(2, requires_grad=True)
        run(BackwardStepper(x.sin().cos().sum()))  # a warning would be an error here
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
            pytest.raises(RuntimeError, match="returned nan values"),
        ):
            run(BackwardStepper((x.sqrt() * 0).sum()))
