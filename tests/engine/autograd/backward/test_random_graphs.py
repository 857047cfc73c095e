"""Random expression graphs, stepped with detours, against backward() to the bit.

`make fuzz` runs more of them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from engine.autograd import BackwardStepper, BreakMode
from engine.autograd.graph.engine_run import execution_order
from tests.engine.autograd.backward.test_stepper import kept, same_bits
from tests.engine.autograd.backward_cases import NoGradient, NotMaterialised, Scaled
from tests.examples import examples, seconds

pytestmark = pytest.mark.timeout(seconds(30))

SHAPES = [(), (3,), (1, 3), (2, 1), (2, 3), (1,), (1, 1)]
Tensors = list[torch.Tensor]


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.mul_(1.5)
    if y.ndim:
        y[..., :1] += y[..., -1:].detach()
        y.transpose(0, -1)[0].sub_(0.25)
    return y


def hooked(x: torch.Tensor) -> torch.Tensor:
    y = x * 0.75
    y.register_hook(lambda g: None if g is None else g * 2 + 1)
    return y


def node_hooked(x: torch.Tensor) -> torch.Tensor:
    y = x - 0.5
    assert y.grad_fn is not None
    y.grad_fn.register_prehook(lambda grads: (None if grads[0] is None else grads[0] * 3,))
    return y


def scaled_both(x: torch.Tensor) -> torch.Tensor:
    first, second = Scaled.apply(x.clamp(-2, 2), 0.5, torch.ones((), dtype=x.dtype))
    return first + second


UNARY: list[Callable[[torch.Tensor], torch.Tensor]] = [
    torch.sin,
    torch.tanh,
    torch.relu,
    torch.square,
    lambda x: x,
    lambda x: x.detach() + x,
    lambda x: x.double(),
    lambda x: x.float(),
    lambda x: torch.complex(x, x.cos()).abs(),
    lambda x: x.sum(-1, keepdim=True) if x.ndim else x.sum(),
    lambda x: x.cumsum(-1) if x.ndim else x.neg(),
    lambda x: x.sort(-1)[0] if x.ndim else x.abs(),
    lambda x: x.unbind(-1)[0].unsqueeze(-1) if x.ndim else x.clone(),
    lambda x: torch.stack(x.unbind(-1)[::-1], -1) if x.ndim else x.clone(),
    lambda x: torch.cat(x.chunk(2, -1)[::-1], -1) if x.ndim else x.expand(1, 3),
    lambda x: x.split([1, x.shape[-1] - 1], -1)[0] if x.ndim and x.shape[-1] > 1 else x * 2,
    lambda x: x[..., [0, 0, -1]] if x.ndim else x.view(1),
    lambda x: (
        torch.cat([x.to(torch.float32), torch.ones_like(x, dtype=torch.float32)]).narrow(
            0, 0, x.shape[0]
        )
        if x.ndim
        else x.reshape(1, 1)
    ),
    lambda x: checkpoint(lambda t: (t * t).cos(), x, use_reentrant=False),
    lambda x: F.layer_norm(x, x.shape[-1:]) if x.ndim else x.exp().log(),
    in_place,
    hooked,
    node_hooked,
    scaled_both,
    NoGradient.apply,
    lambda x: NotMaterialised.apply(x)[0],
]

BINARY: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
    torch.add,
    torch.mul,
    torch.sub,
    lambda x, y: x / (y.abs() + 1),
    torch.maximum,
    lambda x, y: torch.where(x > y, x, y * 0.1),
    lambda x, y: x.unsqueeze(-1) @ y.to(x.dtype).reshape(-1)[:1].unsqueeze(-1),
]

Program = list[tuple[int, int, int]]
"""Operations (which, first operand, second operand), each taken modulo what there is."""


def run(program: Program, shapes: list[int], roots: list[int], retained: set[int]):
    """Roots, and the tensors whose `.grad` counts, of a program. The same each time."""
    generator = torch.Generator().manual_seed(len(program))
    leaves: Tensors = [
        torch.randn(SHAPES[i % len(SHAPES)], generator=generator).requires_grad_() for i in shapes
    ]
    values = list(leaves)
    for which, first, second in program:
        which %= len(UNARY) + len(BINARY)
        x, y = values[first % len(values)], values[second % len(values)]
        result = UNARY[which](x) if which < len(UNARY) else BINARY[which - len(UNARY)](x, y)
        if tuple(result.shape) not in SHAPES:  # what would not broadcast with all others
            result = result.reshape(-1)[:1]
        values.append(result)
    kept_grads = [v for i, v in enumerate(values) if not v.is_leaf and i % 7 in retained]
    for value in kept_grads:
        value.retain_grad()
    chosen = [values[-1 - i % len(values)] for i in roots]
    return [r if r.ndim == 0 else r.sum() for r in chosen], leaves + kept_grads


numbers = st.integers(0, 1_000)


@settings(
    max_examples=examples(30),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    program=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=14),
    shapes=st.lists(numbers, min_size=1, max_size=4),
    roots=st.lists(st.integers(0, 5), min_size=1, max_size=3),
    retained=st.sets(st.integers(0, 6), max_size=2),
    detours=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), max_size=4),
    create_graph=st.booleans(),
)
def test_any_graph_steps_to_the_bits_of_backward(
    program: Program,
    shapes: list[int],
    roots: list[int],
    retained: set[int],
    detours: list[tuple[int, int]],
    create_graph: bool,
) -> None:
    expected_roots, expected = run(program, shapes, roots, retained)
    torch.autograd.backward(expected_roots, create_graph=create_graph)
    wanted = kept(expected)

    stepped_roots, stepped = run(program, shapes, roots, retained)
    watch = [t for t in stepped if not t.is_leaf]
    with BackwardStepper(stepped_roots, create_graph=create_graph, watch=watch) as stepper:
        for forth, back in detours:
            for _ in range(forth):
                stepper.step()
            for _ in range(back):
                stepper.back()
        stepper.run()
        assert stepper.position == len(stepper.graph.nodes)
        for i, (t, grad) in enumerate(zip(stepped, wanted, strict=True)):
            assert same_bits(t.grad, grad), f"tensor {i}: {t.grad}, but backward() gives {grad}"
    real_roots, real = run(program, shapes, roots, retained)
    with BreakMode(real_roots, create_graph=create_graph) as engine:
        for forth, _ in detours:
            place = engine.position + forth
            engine.run(lambda e, place=place: e.position >= place)
        engine.run()
        assert engine.position == len(engine.graph.nodes)
    for i, (t, grad) in enumerate(zip(real, wanted, strict=True)):
        assert same_bits(t.grad, grad), f"tensor {i} held: {t.grad}, but it should be {grad}"
    for t in (*expected, *stepped, *real):
        t.grad = None  # with create_graph, a gradient and its leaf hold each other


@settings(
    max_examples=examples(30),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    program=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=10),
    shapes=st.lists(numbers, min_size=1, max_size=3),
    places=st.lists(numbers, min_size=1, max_size=3),
    back=st.integers(0, 12),
)
def test_any_edit_equals_its_pre_hook(
    program: Program, shapes: list[int], places: list[int], back: int
) -> None:
    def hook(grads: tuple) -> tuple:
        return tuple(None if g is None else (g * 0.5).tanh() for g in grads)

    stepped_roots, stepped = run(program, shapes, [0], set())
    with BackwardStepper(stepped_roots) as stepper:
        # Where nothing arrives torch calls no hook of a node that is run by itself.
        chosen = {p % len(stepper.plan) for p in places}
        for place in chosen:
            stepper.edit(stepper.plan[place], hook)
        stepper.run()
        for _ in range(back):
            stepper.back()
        stepper.run()
    real_roots, real = run(program, shapes, [0], set())
    with BreakMode(real_roots) as engine:
        for place in chosen:
            engine.edit(engine.plan[place], hook)
        engine.run()
    roots, expected = run(program, shapes, [0], set())
    order = execution_order(roots)
    for place in chosen:
        order[place].register_prehook(hook)
    torch.autograd.backward(roots)
    for i, (a, b, wanted) in enumerate(zip(stepped, real, kept(expected), strict=True)):
        assert same_bits(a.grad, wanted), f"tensor {i}: {a.grad}, but a hook gives {wanted}"
        assert same_bits(b.grad, wanted), f"tensor {i} held: {b.grad}, but a hook gives {wanted}"
